import type { ChildProcess } from 'node:child_process'
import { accessSync, constants, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { CellCgroup } from '../../src/sys/cell-cgroup.js'
import { Group, kernelTree } from '../../src/sys/cgroup-files.js'
import { findFreezer, type Freezer, thawDead } from '../../src/sys/cgroup-freezer.js'
import type { CgroupRun } from '../../src/sys/cgroup-runs.js'
import { type Cgroups, detectCgroups } from '../../src/sys/cgroups.js'
import { skipGroup } from '../unless.js'
import { type CgroupCells, findCgroupCells } from './cgroup-cells.js'
import { createCgroupModel } from './cgroup-model.js'
import { doorsOf, endOf, python, startIn } from './cgroup-programs.js'
import { startScript } from './run-script.js'

const found = findCgroupCells()
const { create, removeAll } = found as CgroupCells
const refusal = typeof found === 'string' ? found : !found.cgroups.freezes.enforced && found.cgroups.freezes.why

function busyIn(cell: CellCgroup): ChildProcess {
  return startIn(doorsOf(cell, cell.beginRun({ memoryBytes: undefined, processes: undefined }).name), python('while True: pass'))
}

async function untilBusy(cell: CellCgroup): Promise<void> {
  while ((cell.usage().cpuMs ?? 0) < 30) await sleep(5)
}

/** Our own that stand by to thaw. */
function standingBy(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
        return stat.includes('(tail)') && Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === process.pid
      } catch {
        return false
      }
    })
}

it('what another process sweeps away meanwhile is not missed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gbx-swept-'))
  writeFileSync(join(folder, 'freezer.state'), '')
  const tree = { ...kernelTree, list: (place: string) => (place === folder ? ['gone'] : []) }
  try {
    thawDead(new Group(folder, tree))
    expect(readFileSync(join(folder, 'freezer.state'), 'utf8')).toBe('THAWED')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

describe('guests that are frozen', () => {
  skipGroup(refusal)
  afterEach(async () => {
    if (typeof found !== 'string') await removeAll()
  })

  it('use no processor until they are let go', async () => {
    const cell = await create()
    const ended = endOf(busyIn(cell))
    await untilBusy(cell)
    await cell.freeze()
    const before = cell.usage().cpuMs as number
    await sleep(300)
    expect(cell.usage().cpuMs).toBe(before)
    await cell.thaw()
    while ((cell.usage().cpuMs as number) < before + 30) await sleep(5)
    expect(standingBy()).toEqual([])
    cell.kill()
    expect((await ended).signal).toBe('SIGKILL')
  })

  it('can be frozen again and again', async () => {
    const cell = await create()
    const ended = endOf(busyIn(cell))
    await untilBusy(cell)
    for (let round = 0; round < 20; round += 1) {
      await cell.freeze()
      await cell.thaw()
    }
    await cell.freeze()
    const before = cell.usage().cpuMs
    await sleep(100)
    expect(cell.usage().cpuMs).toBe(before)
    await cell.remove()
    expect((await ended).signal).toBe('SIGKILL')
  })

  it('stand still while a run that is left out goes on, until all are to', async () => {
    const cell = await create()
    const [held, free] = [0, 1].map(() => cell.beginRun({ memoryBytes: undefined, processes: undefined })) as [CgroupRun, CgroupRun]
    const ended = [held, free].map((run) => endOf(startIn(doorsOf(cell, run.name), python('while True: pass'))))
    const used = (run: CgroupRun): number => run.counts().cpuMs ?? 0
    const goesOn = async (run: CgroupRun, before = used(run)): Promise<void> => {
      while (used(run) < before + 30) await sleep(5)
    }
    await Promise.all([goesOn(held), goesOn(free)])
    for (let round = 0; round < 2; round += 1) {
      await cell.freeze([free.name as string])
      const before = used(held)
      await goesOn(free)
      expect(used(held)).toBe(before)
      await cell.thaw()
      await goesOn(held)
    }
    await cell.freeze()
    const before = [held, free].map(used)
    await sleep(200)
    expect([held, free].map(used)).toEqual(before)
    await cell.thaw()
    await Promise.all([goesOn(held), goesOn(free)])
    await cell.freeze([free.name as string])
    await cell.remove()
    expect((await Promise.all(ended)).map(({ signal }) => signal)).toEqual(['SIGKILL', 'SIGKILL'])
    expect(standingBy()).toEqual([])
  })

  it('are killed with their groups, and nothing stands by any more', async () => {
    const cell = await create()
    const ended = endOf(busyIn(cell))
    await untilBusy(cell)
    await cell.freeze()
    const folders = cell.places(undefined)
    await cell.remove()
    expect((await ended).signal).toBe('SIGKILL')
    expect(folders.filter((folder) => existsSync(folder))).toEqual([])
    expect(standingBy()).toEqual([])
  })

  it('go on by themselves when their owner is killed', async () => {
    const owner = await startScript(new URL('programs/freeze-and-wait.ts', import.meta.url))
    const guest = Number(await owner.firstLine)
    expect(stateOf(guest)).toBe('D')
    owner.child.kill('SIGKILL')
    await owner.ended
    await expect.poll(() => stateOf(guest)).not.toBe('D')
    await (found as CgroupCells).cgroups.sweep()
    // Whoever inherited it may take its time to bury it.
    await expect.poll(() => stateOf(guest)).toMatch(/^(Z|gone)$/)
  })
})

function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.charAt(stat.lastIndexOf(')') + 2)
  } catch {
    return 'gone'
  }
}

describe('freezing in version 2', () => {
  let root: string
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'cgroup-freezer-'))
  })
  afterEach(() => rmSync(root, { recursive: true }))

  function detect(isOld: boolean): Cgroups {
    const delegated = join(root, 'service')
    const { tree, populate } = createCgroupModel({ root, delegated })
    populate(root)
    writeFileSync(join(root, 'cgroup.subtree_control'), 'cpu io memory pids')
    populate(delegated)
    const texts = { mountinfo: `30 24 0:26 / ${root} rw - cgroup2 cgroup2 rw\n`, cgroup: '0::/service\n' }
    const has = (file: string): boolean => !(isOld && file.endsWith('cgroup.freeze')) && tree.has(file)
    return detectCgroups({ tree: { ...tree, has }, texts, devices: [] }) as Cgroups
  }

  it('is a file of the guests, who can be killed as they are', async () => {
    const cgroups = detect(false)
    expect(cgroups.freezes).toEqual({ enforced: true, by: `cgroup v2 at ${join(root, 'service')}` })
    const cell = await cgroups.create({ id: 'abcdefghij0123456789', memoryBytes: 2 ** 26, cpus: 0.5, processes: 20 })
    cell.settle()
    const guest = cell.places(undefined)[0] as string
    await cell.freeze()
    expect(readFileSync(join(guest, 'cgroup.freeze'), 'utf8')).toBe('1')
    await cell.thaw()
    expect(readFileSync(join(guest, 'cgroup.freeze'), 'utf8')).toBe('0')
    await cell.freeze()
    await cell.remove()
    expect(existsSync(guest)).toBe(false)
  })

  it('leaves a run out by freezing each of the others, whatever becomes of them meanwhile', async () => {
    const cell = await detect(false).create({ id: 'abcdefghij0123456789', memoryBytes: 2 ** 26, cpus: 0.5, processes: 20 })
    cell.settle()
    const runs = Array.from({ length: 3 }, () => cell.beginRun({ memoryBytes: undefined, processes: undefined }).name as string)
    const guest = cell.places(undefined)[0] as string
    const states = (): string[] => [guest, ...runs.map((name) => join(guest, name))].map((group) => readFileSync(join(group, 'cgroup.freeze'), 'utf8'))
    await cell.freeze([runs[1] as string])
    expect(states()).toEqual(['0', '1', '0', '1'])
    rmSync(join(guest, runs[0] as string), { recursive: true })
    await cell.thaw()
    expect(readFileSync(join(guest, runs[2] as string, 'cgroup.freeze'), 'utf8')).toBe('0')
    await cell.freeze()
    expect(readFileSync(join(guest, 'cgroup.freeze'), 'utf8')).toBe('1')
    await cell.remove()
    expect(existsSync(guest)).toBe(false)
  })

  it('is refused by name where the kernel is older than it', async () => {
    const cgroups = detect(true)
    expect(cgroups.freezes).toEqual({ enforced: false, why: `${join(root, 'service')} gives its groups no cgroup.freeze` })
    const cell = await cgroups.create({ id: 'abcdefghij0123456789', memoryBytes: 2 ** 26, cpus: 0.5, processes: 20 })
    cell.settle()
    await expect(cell.freeze()).rejects.toMatchObject({ code: 'unsupported' })
    await cell.remove()
  })
})

/** The place of this process in version 2, where groups can be made in it; whatever controllers they are given, they can be frozen. */
function unifiedPlace(): string | undefined {
  const mount = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .find((line) => line.includes(' - cgroup2 '))
  const own = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1]
  const place = mount === undefined || own === undefined ? undefined : join(mount.split(' ')[4] ?? '', own)
  try {
    if (place !== undefined) accessSync(place, constants.W_OK)
    return place
  } catch {
    return undefined
  }
}

describe('freezing in version 2, as the kernel does it', () => {
  const place = unifiedPlace()
  skipGroup(place === undefined && 'there is no group of version 2 here that may be written')

  it('stops all runs but one, and lets them go on; whoever is killed meanwhile ends', async () => {
    const cell = new Group(place as string, kernelTree).below(`gbx-freezer-${process.pid}`)
    const guest = cell.below('guest')
    const runs = ['r1', 'r2'].map((name) => guest.below(name))
    for (const group of [cell, guest, ...runs]) group.make()
    const children = runs.map((run) => startIn([run.procs], python('while True: pass')))
    try {
      const ticks = (): number[] => children.map(({ pid }) => Number(readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ')[11]))
      const goOn = async (indices: readonly number[], from = ticks()): Promise<void> => {
        while (indices.some((index) => (ticks()[index] ?? 0) < (from[index] ?? 0) + 5)) await sleep(5)
      }
      while (runs.some((run) => run.read('cgroup.procs') === '')) await sleep(5)
      await goOn([0, 1])
      const freezer = findFreezer([{ hierarchy: { version: 2, base: place as string, controllers: [] }, cell, warden: undefined, guest }]) as Freezer
      await freezer.freeze(['r2'])
      const before = ticks()
      await goOn([1])
      expect(ticks()[0]).toBe(before[0])
      await freezer.thaw()
      await goOn([0, 1])
      await freezer.freeze(['r2'])
      const ended = children.map(endOf)
      freezer.kill()
      expect((await Promise.all(ended)).map(({ signal }) => signal)).toEqual(['SIGKILL', 'SIGKILL'])
      await freezer.release()
    } finally {
      for (const child of children) child.kill('SIGKILL')
      await cell.remove()
    }
  })
})
