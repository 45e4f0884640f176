import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import type { CellCgroup } from '../../src/sys/cell-cgroup.js'
import { skipGroup } from '../unless.js'
import { type CgroupCells, findCgroupCells } from './cgroup-cells.js'
import { doorsOf, endOf, python, startIn } from './cgroup-programs.js'

const MiB = 2 ** 20
const found = findCgroupCells()
const { create, removeAll } = found as CgroupCells
const limits = { memoryBytes: 128 * MiB, cpus: 2, processes: 20 }
const unlimited = { memoryBytes: undefined, processes: undefined }

afterEach(async () => {
  if (typeof found !== 'string') await removeAll()
})

/** A run of this code that is over. */
async function run(cell: CellCgroup, code: string, own: { processes?: number } = {}): Promise<ReturnType<CellCgroup['beginRun']>> {
  const begun = cell.beginRun({ ...unlimited, ...own })
  await endOf(startIn(doorsOf(cell, begun.name), python(code)))
  begun.close()
  await sleep(5)
  return begun
}

describe('the groups of a cell that is over', () => {
  skipGroup(typeof found === 'string' ? found : !existsSync('/sys/fs/cgroup/pids') && 'version 2 begins no counts anew')

  test('serve another, with the same limits and nothing of what was counted', async () => {
    const cell = await create(limits)
    // The group of the first run is made when nothing else is to be done.
    await sleep(5)
    const burn = 'x = b"x" * (60 * 2**20)\nimport time\nwhile time.process_time() < 0.3: pass'
    const first = await run(cell, burn)
    expect([(first.counts().cpuMs ?? 0) > 250, (first.counts().memoryPeakBytes ?? 0) > 60 * MiB]).toEqual([true, true])
    const next = cell.renewed()
    expect(next?.cgroup.places(undefined)).toEqual(cell.places(undefined))
    await next?.build()
    const other = next?.cgroup as CellCgroup
    expect(other.stated()).toMatchObject(limits)
    const { cpuMs = 0, memoryPeakBytes = 0, ...counts } = other.usage()
    expect([cpuMs < 50, memoryPeakBytes < 4 * MiB]).toEqual([true, true])
    expect(counts).toMatchObject({ processes: 0, oomKills: 0, processHits: 0 })
    const second = await run(other, '')
    expect(second.name).toBe(first.name)
    expect([(second.counts().cpuMs ?? 0) < 250, (second.counts().memoryPeakBytes ?? 0) < 50 * MiB]).toEqual([true, true])
    expect(() => cell.beginRun(unlimited)).toThrow(expect.objectContaining({ code: 'closed' }))
    await other.remove()
    expect(other.places(undefined).filter(existsSync)).toEqual([])
  })

  test.each<[string, string]>([
    ['forked', 'import os\nif os.fork() == 0: os._exit(0)\nos.wait()'],
    ['was killed for memory', 'x = bytearray(300 * 2**20)'],
  ])("in which a program %s are no other's", async (_, code) => {
    const cell = await create(limits)
    await run(cell, code)
    expect(cell.renewed()).toBeUndefined()
    await cell.remove()
    expect(cell.places(undefined).filter(existsSync)).toEqual([])
  })

  test("with other limits than at first, or that were ever frozen, are no other's", async () => {
    const [changed, frozen] = [await create(limits), await create(limits)]
    changed.limit({ ...limits, processes: 10 })
    changed.limit({ ...limits })
    await frozen.freeze()
    await frozen.thaw()
    expect([changed.renewed(), frozen.renewed()]).toEqual([undefined, undefined])
  })

  test("in which anything is left are no other's", async () => {
    const cell = await create(limits)
    const begun = cell.beginRun(unlimited)
    const left = startIn(doorsOf(cell, begun.name), python('print(1, flush=True); import time; time.sleep(60)'))
    await new Promise((resolve) => left.stdout?.once('data', resolve))
    begun.close()
    expect(cell.renewed()).toBeUndefined()
    const ended = endOf(left)
    await cell.remove()
    expect((await ended).signal).toBe('SIGKILL')
  })
})
