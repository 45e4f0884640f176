import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import type { CellCgroup } from '../../src/sys/cell-cgroup.js'
import { skipGroup, testUnless } from '../unless.js'
import { type CgroupCells, findCgroupCells } from './cgroup-cells.js'
import { doorsOf, endOf, python, startIn } from './cgroup-programs.js'

const MiB = 2 ** 20
const found = findCgroupCells()
const { create, removeAll } = found as CgroupCells
const isRoot = process.getuid?.() === 0
const isUnified = !existsSync('/sys/fs/cgroup/pids')

afterEach(async () => {
  if (typeof found !== 'string') await removeAll()
})

const unlimited = { memoryBytes: undefined, processes: undefined }

function begin(cell: CellCgroup, limits: { memoryBytes?: number; processes?: number } = {}) {
  const run = cell.beginRun({ ...unlimited, ...limits })
  const doors = doorsOf(cell, run.name)
  return { ...run, doors, start: (argv: readonly string[]) => startIn(doors, argv) }
}

/** A run of this code that is over, in a cell that is busy: the groups of those that follow are made ahead. */
async function ended(cell: CellCgroup, code: string, limits: { processes?: number } = {}) {
  const run = begin(cell, limits)
  run.spareTime()
  await endOf(run.start(python(code)))
  run.close()
  await sleep(5)
  return run
}

const forkBomb = `
import os, time
made = 0
for _ in range(30):
    try:
        if os.fork() == 0: time.sleep(60)
        made += 1
    except BlockingIOError: pass
print(made, flush=True)`

describe('a run', () => {
  skipGroup(typeof found === 'string' && found)

  it('is told apart from one beside it: only the run that took too much memory counts a kill', async () => {
    const cell = await create({ memoryBytes: 64 * MiB, cpus: 2 })
    const [greedy, modest] = [begin(cell), begin(cell)]
    const quiet = modest.start(python('import time; x = bytearray(10 * 2**20); print("up", flush=True); time.sleep(60)'))
    await new Promise((resolve) => quiet.stdout?.once('data', resolve))
    expect((await endOf(greedy.start(python('x = bytearray(200 * 2**20)')))).signal).toBe('SIGKILL')
    expect([greedy.counts().oomKills, modest.counts().oomKills, cell.usage().oomKills]).toEqual([1, 0, 1])
    expect([quiet.exitCode, quiet.signalCode]).toEqual([null, null])
    quiet.kill('SIGKILL')
    await endOf(quiet)
    // What a run counted is the cell's for good.
    for (const run of [greedy, modest]) run.close()
    expect([cell.usage().oomKills, greedy.counts().oomKills]).toEqual([1, 1])
  })

  it('counts the forks that met the limit, and the most processes it had', async () => {
    const cell = await create({ processes: 10 })
    const [bomb, modest] = [begin(cell), begin(cell)]
    const { stdout } = await endOf(bomb.start(python(`${forkBomb}\nos.kill(os.getpid(), 9)`)).on('exit', () => cell.kill()))
    expect(Number(stdout)).toBeLessThan(10)
    expect(bomb.counts()).toMatchObject({ processHits: 30 - Number(stdout), processesPeak: Number(stdout) + 1 })
    expect(modest.counts()).toMatchObject({ processHits: 0, processesPeak: 0 })
    expect(cell.usage()).toMatchObject({ processHits: 30 - Number(stdout), processesPeak: Number(stdout) + 1 })
  })

  it('may be held below its cell, in memory and in processes', async () => {
    const cell = await create({ memoryBytes: 128 * MiB, processes: 20, cpus: 2 })
    const small = begin(cell, { memoryBytes: 32 * MiB, processes: 4 })
    expect((await endOf(small.start(python('x = bytearray(64 * 2**20)')))).signal).toBe('SIGKILL')
    expect((await endOf(small.start(python(forkBomb)).on('exit', () => cell.kill()))).stdout).toBe('3\n')
    expect(small.counts()).toMatchObject({ oomKills: 1, processHits: 27, processesPeak: 4 })
    expect((await endOf(begin(cell).start(python('x = bytearray(64 * 2**20); print(len(x))')))).stdout).toBe(`${64 * MiB}\n`)
  })

  it('has its processor time counted within a tenth', async () => {
    const cell = await create({ cpus: 2 })
    const run = begin(cell)
    const code = 'import time\nwhile time.process_time() < 1: pass\nprint(time.process_time())'
    const burnt = Number((await endOf(run.start(python(code)))).stdout) * 1000
    const { cpuMs = 0 } = run.counts()
    expect(Math.abs(cpuMs - burnt)).toBeLessThan(0.1 * burnt)
    run.close()
    expect(Math.abs((cell.usage().cpuMs ?? 0) - burnt)).toBeLessThan(0.1 * burnt)
  })

  it('has its memory counted within a twentieth and 2 MiB', async () => {
    const cell = await create({ memoryBytes: 256 * MiB, cpus: 2 })
    const peakOf = async (mebibytes: number): Promise<number> => {
      const run = begin(cell)
      await endOf(run.start(python(`x = b"x" * (${mebibytes} * 2**20)`)))
      run.close()
      return run.counts().memoryPeakBytes ?? 0
    }
    const [idle, taken] = [await peakOf(0), await peakOf(100)]
    expect(Math.abs(taken - idle - 100 * MiB)).toBeLessThan(0.05 * 100 * MiB + 2 * MiB)
  })

  it('leaves at most one group, for the next, soon after it is closed, and one with its limits while processes are left', async () => {
    const cell = await create()
    const [first, done, lingering] = [begin(cell), begin(cell), begin(cell, { processes: 2 })]
    const left = lingering.start(['sleep', '60'])
    while (!readFileSync(lingering.doors.at(-1) as string, 'latin1').includes(`${left.pid}`)) await sleep(2)
    for (const run of [first, done, lingering, done]) run.close()
    const folders = (name: string | undefined): string[] => cell.runJoins.map(({ folder }) => join(folder, name as string)).filter(existsSync)
    await expect.poll(() => folders(done.name)).toEqual([])
    await expect.poll(() => folders(first.name).length).toBe(isUnified ? 0 : cell.runJoins.length)
    expect(folders(lingering.name).length).toBe(cell.runJoins.length)
    left.kill('SIGKILL')
    await endOf(left)
    // What has ended may be counted for a moment yet.
    while (folders(lingering.name).length > 0) {
      begin(cell).close()
      await sleep(2)
    }
  })

  it('is removed with its cell when it still runs', async () => {
    const cell = await create()
    const run = begin(cell)
    const left = endOf(run.start(['sleep', '60']))
    while (readFileSync(run.doors.at(-1) as string, 'latin1') === '') await sleep(2)
    await cell.remove()
    expect((await left).signal).toBe('SIGKILL')
    expect(cell.places(run.name).filter(existsSync)).toEqual([])
    expect(() => cell.beginRun(unlimited)).toThrow(expect.objectContaining({ code: 'closed' }))
  })

  it('has the group of the next one made while its program is on its way, but not the first, which is most often the only one', async () => {
    const cell = await create()
    const runsOf = (): string[] => {
      const [memory = ''] = cell.places('x').filter((path) => path.endsWith('/x'))
      return readdirSync(dirname(memory)).filter((name) => /^r\d$/.test(name))
    }
    const idle = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    await idle()
    begin(cell).spareTime()
    await idle()
    expect(runsOf()).toEqual(['r1'])
    begin(cell).spareTime()
    await idle()
    expect(runsOf().sort()).toEqual(['r1', 'r2', 'r3'])
  })

  it('that begins as soon as there are groups is the only one for which any is made', async () => {
    const cell = await create()
    expect(begin(cell).name).toBe('r1')
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    expect(cell.places('r2').filter((path) => path.endsWith('/r2') && existsSync(path))).toEqual([])
  })

  testUnless(isUnified && 'version 2 begins no counts anew')('that was the first leaves its group to the second, which tells only its own counts', async () => {
    const cell = await create({ memoryBytes: 256 * MiB, cpus: 2 })
    // The group of the first is made when nothing else is to be done.
    await sleep(5)
    const first = begin(cell)
    await endOf(first.start(python('x = b"x" * (100 * 2**20)\nimport time\nwhile time.process_time() < 0.3: pass')))
    first.close()
    await sleep(5)
    const second = begin(cell)
    expect(second.name).toBe(first.name)
    await endOf(second.start(python('')))
    for (const [run, isLarge] of [
      [first, true],
      [second, false],
    ] as const) {
      const { cpuMs = 0, memoryPeakBytes = 0 } = run.counts()
      expect([cpuMs > 250, memoryPeakBytes > 50 * MiB]).toEqual([isLarge, isLarge])
    }
  })

  testUnless(isUnified && 'version 2 begins no counts anew')(
    'that left nothing makes way for one with its group, and each tells only its own counts',
    async () => {
      const cell = await create({ memoryBytes: 256 * MiB, cpus: 2 })
      await ended(cell, '')
      const burn = 'import time\nwhile time.process_time() < 0.3: pass'
      const first = await ended(cell, `x = b"x" * (100 * 2**20)\n${burn}`)
      const [second, third] = [await ended(cell, ''), await ended(cell, '')]
      expect(new Set([first.name, second.name, third.name]).size).toBeLessThan(3)
      expect(first.counts()).toMatchObject({ processesPeak: 1, oomKills: 0 })
      expect([(first.counts().cpuMs ?? 0) > 250, (first.counts().memoryPeakBytes ?? 0) > 100 * MiB]).toEqual([true, true])
      for (const { cpuMs = 0, memoryPeakBytes = 0 } of [second.counts(), third.counts()])
        expect([cpuMs > 0, cpuMs < 250, memoryPeakBytes > 0, memoryPeakBytes < 50 * MiB]).toEqual([true, true, true, true])
    },
  )

  it('has no group in which another forked, was killed for memory, or had limits of its own', async () => {
    const cell = await create({ memoryBytes: 64 * MiB, processes: 10, cpus: 2 })
    await ended(cell, '')
    const forked = await ended(cell, 'import os\nif os.fork() == 0: os._exit(0)\nos.wait()')
    const killed = await ended(cell, 'x = bytearray(200 * 2**20)')
    const limited = await ended(cell, '', { processes: 5 })
    const names = [forked, killed, limited].map(({ name }) => name)
    expect(new Set(names).size).toBe(3)
    expect([forked.counts().processesPeak, killed.counts().oomKills]).toEqual([2, 1])
    for (let round = 0; round < 6; round++) {
      const next = await ended(cell, '')
      expect(names).not.toContain(next.name)
      expect(next.counts()).toMatchObject({ processesPeak: 1, oomKills: 0, processHits: 0 })
    }
  })

  it('is begun, asked and closed a hundred times without a trace', async () => {
    const cell = await create()
    for (let round = 0; round < 100; round++) {
      const run = cell.beginRun(unlimited)
      expect(run.counts()).toMatchObject({ oomKills: 0, processHits: 0, cpuMs: 0 })
      run.close()
      await sleep(0)
    }
    await cell.remove()
    expect(cell.places(undefined).filter(existsSync)).toEqual([])
  })

  testUnless(!isRoot && 'only root has another user to hand a group to')(
    'is entered by the user it was handed to, who can change no limit and enter no other',
    async () => {
      const writer = 0x78fffffc
      const cell = await create({ writer })
      const [own, other] = [begin(cell), await create()]
      const tryAs = (files: readonly string[], value: string): number[] =>
        files.map((file) => spawnSync('/bin/sh', ['-c', 'echo "$1" > "$2"', 'sh', value, file], { uid: writer, gid: writer, stdio: 'ignore' }).status ?? -1)
      const doors = cell.runJoins.map(({ folder, file }) => join(folder, own.name as string, file))
      expect(tryAs(doors, '0')).toEqual(doors.map(() => 0))
      const closed = [...cell.runJoins.map(({ folder, file }) => join(folder, file)), ...doorsOf(other, other.beginRun(unlimited).name)]
      expect(tryAs(closed, '0')).toEqual(closed.map(() => 2))
      const limits = cell.places(own.name).flatMap((folder) => ['memory.limit_in_bytes', 'memory.max', 'pids.max', 'cpu.max'].map((name) => join(folder, name)))
      const there = limits.filter(existsSync)
      expect([there.length > 1, tryAs(there, '1')]).toEqual([true, there.map(() => 2)])
    },
  )
})
