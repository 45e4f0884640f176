import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { findBlockDevices } from '../../src/sys/block-devices.js'
import type { CellCgroup } from '../../src/sys/cell-cgroup.js'
import { skipGroup, testUnless } from '../unless.js'
import { type CgroupCells, findCgroupCells } from './cgroup-cells.js'
import { doorsOf, endOf, python, startIn } from './cgroup-programs.js'

const MiB = 2 ** 20
const found = findCgroupCells()
const { cgroups, create, removeAll } = found as CgroupCells
const { devices } = findBlockDevices([tmpdir()])
const rate = typeof found === 'string' ? undefined : found.cgroups.enforces.readRate
const reason =
  rate === undefined ? (found as string) : !rate.enforced ? rate.why : devices.length === 0 && `${tmpdir()} is on no block device, so nothing is read from one`

let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cgroup-rates-'))
  await endOf(startIn([], python(`import os\nwith open("${folder}/file", "wb") as f:\n    f.write(os.urandom(8 * 2**20)); f.flush(); os.fsync(f.fileno())`)))
})
afterAll(() => rmSync(folder, { recursive: true }))
afterEach(async () => {
  if (typeof found !== 'string') await removeAll()
})

/** Past the page cache, so that it is the disk that is read; bytes per second. */
const readAll = (path: string): string => `
import mmap, os, time
file, buffer, got = os.open("${path}", os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 1 << 20), 0
started = time.monotonic()
while (count := os.preadv(file, [buffer], got)) > 0: got += count
print(got / (time.monotonic() - started))`

async function rateIn(cell: CellCgroup): Promise<number> {
  const run = cell.beginRun({ memoryBytes: undefined, processes: undefined })
  const { stdout } = await endOf(startIn(doorsOf(cell, run.name), python(readAll(`${folder}/file`))))
  run.close()
  return Number(stdout)
}

describe('a rate of reading', () => {
  skipGroup(reason)

  it('holds, and without it the same is several times as fast', async () => {
    const readBytesPerSecond = 4 * MiB
    const rates = { devices, readBytesPerSecond, writeBytesPerSecond: undefined }
    const [held, free] = [await create({ cpus: 2, rates }), await create({ cpus: 2 })]
    expect([held.stated().readBytesPerSecond, free.stated().readBytesPerSecond]).toEqual([readBytesPerSecond, undefined])
    const [heldRate, freeRate] = [await rateIn(held), await rateIn(free)]
    expect(heldRate).toBeGreaterThan(0)
    expect(heldRate).toBeLessThan(1.25 * readBytesPerSecond)
    expect(freeRate).toBeGreaterThan(2 * heldRate)
  })

  it('is set and lifted while the cell lives', async () => {
    const limits = { memoryBytes: 64 * MiB, cpus: 2, processes: 20 }
    const cell = await create(limits)
    cell.limit({ ...limits, rates: { devices, readBytesPerSecond: 4 * MiB, writeBytesPerSecond: undefined } })
    const held = await rateIn(cell)
    cell.limit(limits)
    expect(cell.stated().readBytesPerSecond).toBeUndefined()
    expect(await rateIn(cell)).toBeGreaterThan(2 * held)
  })

  it('for a disk that there is not is refused, and nothing of the attempt stays', async () => {
    const rates = { devices: ['4095:1'], readBytesPerSecond: MiB, writeBytesPerSecond: undefined }
    await expect(create({ rates })).rejects.toMatchObject({ code: 'unsupported' })
  })
})

const writes = typeof found === 'string' ? found : cgroups.enforces.writeRate.enforced && 'here a rate of writing holds'
testUnless(reason || writes)('a rate of writing that would not hold is refused', async () => {
  const rates = { devices, readBytesPerSecond: undefined, writeBytesPerSecond: MiB }
  await expect(create({ rates })).rejects.toMatchObject({ code: 'unsupported', message: 'the kernel states other limits than it was given: writeRate' })
})
