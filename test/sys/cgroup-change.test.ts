import { afterEach, describe, expect, it } from 'vitest'
import type { CellCgroup } from '../../src/sys/cell-cgroup.js'
import { skipGroup } from '../unless.js'
import { type CgroupCells, findCgroupCells } from './cgroup-cells.js'
import { doorsOf, endOf, python, startIn } from './cgroup-programs.js'

const MiB = 2 ** 20
const found = findCgroupCells()
const { create, removeAll } = found as CgroupCells

afterEach(async () => {
  if (typeof found !== 'string') await removeAll()
})

const limits = { memoryBytes: 64 * MiB, cpus: 0.5, processes: 10 }
const stated = { ...limits, readBytesPerSecond: undefined, writeBytesPerSecond: undefined }

function startGuest(cell: CellCgroup, code: string) {
  return startIn(doorsOf(cell, cell.beginRun({ memoryBytes: undefined, processes: undefined }).name), python(code))
}

/** Holds so much memory, or so many processes, until it is killed. */
async function hold(cell: CellCgroup, { mebibytes = 0, children = 0 }): Promise<() => Promise<unknown>> {
  const code = `import os, time\nx = b"x" * (${mebibytes} * 2**20)\nfor _ in range(${children}):\n    if os.fork() == 0: time.sleep(60)\nprint("up", flush=True)\ntime.sleep(60)`
  const child = startGuest(cell, code)
  await new Promise((resolve) => child.stdout?.once('data', resolve))
  return () => {
    cell.kill()
    return endOf(child)
  }
}

describe('limits of a cell that lives', () => {
  skipGroup(typeof found === 'string' && found)

  it('are what the kernel states afterwards, larger and smaller', async () => {
    const cell = await create(limits)
    for (const changed of [
      { memoryBytes: 128 * MiB, cpus: 1.5, processes: 40 },
      { memoryBytes: 32 * MiB, cpus: 0.25, processes: 5 },
      { memoryBytes: 48 * MiB, cpus: 0.25, processes: 3 },
    ]) {
      cell.limit(changed)
      expect(cell.stated()).toEqual({ ...stated, ...changed })
    }
  })

  it('hold: what did not fit does once there is room, and what fitted no more does not', async () => {
    const cell = await create(limits)
    const attempt = async (): Promise<string | null> => (await endOf(startGuest(cell, 'x = b"x" * (90 * 2**20)'))).signal
    const ends = [await attempt()]
    cell.limit({ ...limits, memoryBytes: 128 * MiB })
    ends.push(await attempt())
    cell.limit(limits)
    expect([...ends, await attempt()]).toEqual(['SIGKILL', null, 'SIGKILL'])
  })

  it('are not lowered below the memory in use, which is told, and nobody is killed for it', async () => {
    const cell = await create(limits)
    const end = await hold(cell, { mebibytes: 40 })
    expect(() => cell.limit({ memoryBytes: 16 * MiB, cpus: 0.25, processes: 5 })).toThrow(
      expect.objectContaining({ code: 'conflict', message: expect.stringMatching(/^limits\.memory: 4\d(\.\d)?m is in use, and 16m was asked for$/) as string }),
    )
    expect([cell.stated(), cell.usage().oomKills]).toEqual([stated, 0])
    cell.limit({ ...limits, memoryBytes: 56 * MiB })
    expect([cell.stated().memoryBytes, cell.usage().oomKills]).toEqual([56 * MiB, 0])
    await end()
  })

  it('are not lowered below the processes that run, and nothing else is changed then', async () => {
    const cell = await create(limits)
    const end = await hold(cell, { children: 5 })
    expect(() => cell.limit({ memoryBytes: 128 * MiB, cpus: 1, processes: 4 })).toThrow(
      expect.objectContaining({ code: 'conflict', message: 'limits.processes: 6 are running, and 4 were asked for' }),
    )
    expect(cell.stated()).toEqual(stated)
    cell.limit({ ...limits, processes: 6 })
    expect(cell.stated().processes).toBe(6)
    await end()
  })

  it('that the kernel does not take are refused, and nothing else is changed then', async () => {
    const cell = await create(limits)
    expect(() => cell.limit({ memoryBytes: 32 * MiB, cpus: 0.000001, processes: 5 })).toThrow(expect.objectContaining({ code: 'unsupported' }))
    expect(cell.stated()).toEqual(stated)
  })
})
