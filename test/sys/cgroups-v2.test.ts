import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Cgroups, detectCgroups } from '../../src/sys/cgroups.js'
import { currentOwner, ownerName } from '../../src/sys/owner.js'
import { createCgroupModel } from './cgroup-model.js'

const MiB = 2 ** 20
const id = 'abcdefghij0123456789'
const order = { id, memoryBytes: 64 * MiB, cpus: 0.5, processes: 20 }
const service = 'user.slice/user@1000.service'
const scope = `${service}/app.slice/shell.scope`
let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cgroups-v2-'))
})
afterEach(() => rmSync(root, { recursive: true }))

interface Host {
  readonly delegated: string
  /** Folder → what it hands down. */
  readonly handed: Readonly<Record<string, string>>
  readonly own?: string
  readonly others?: readonly number[]
}

/** A login session of systemd, with this process in `own`. */
function detect({ delegated, handed, own = scope, others = [] }: Host) {
  const { tree, populate, given } = createCgroupModel({ root, delegated: join(root, delegated) })
  const folders = own.split('/').map((_, index, names) => names.slice(0, index).join('/'))
  for (const folder of [...folders, own]) {
    populate(join(root, folder))
    writeFileSync(join(root, folder, 'cgroup.subtree_control'), handed[folder] ?? '')
  }
  writeFileSync(join(root, own, 'cgroup.procs'), [process.pid, ...others].join('\n'))
  const texts = { mountinfo: `30 24 0:26 / ${root} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n`, cgroup: `0::/${own}\n` }
  return { tree, texts, given, found: detectCgroups({ tree, texts, devices }) }
}

const devices = ['254:0', '8:16']
const all = 'cpu io memory pids'
const cellOf = (folder: string, name = id): string => join(root, folder, `glovebox.${ownerName(currentOwner())}.${name}`)
const text = (...path: string[]): string => readFileSync(join(...path), 'utf8')

describe('version 2', () => {
  it('is used at the nearest group above this process that may hand controllers down', () => {
    const { found } = detect({ delegated: service, handed: { '': all, 'user.slice': all, [service]: all } })
    const by = (controller: string) => ({ enforced: true, by: `cgroup v2 ${controller} at ${join(root, service, 'app.slice')}` })
    const rate = { enforced: true, by: `${by('io').by}, for the disks of what the cell shows` }
    expect((found as Cgroups).enforces).toEqual({
      memory: by('memory'),
      cpus: by('cpu'),
      cpuTime: { enforced: true, by: `the run's group of cgroup v2, read by the engine, at ${join(root, service, 'app.slice')}` },
      processes: by('pids'),
      readRate: rate,
      writeRate: rate,
    })
  })

  it('is used further up where the nearest group is not given all controllers', () => {
    const { found } = detect({ delegated: service, handed: { '': all, 'user.slice': all, [service]: 'memory pids io' } })
    expect((found as Cgroups).enforces.cpus).toEqual({ enforced: true, by: `cgroup v2 cpu at ${join(root, service)}` })
    expect(text(root, service, 'cgroup.subtree_control')).toBe('memory pids io cpu')
  })

  it('enforces what is delegated and says what is not', () => {
    const { found } = detect({ delegated: service, handed: { '': all, 'user.slice': 'memory pids', [service]: 'memory pids' } })
    expect((found as Cgroups).enforces).toMatchObject({
      memory: { enforced: true },
      cpus: { enforced: false, why: `${join(root, service, 'app.slice')} is not given the controller cpu, io` },
      cpuTime: { enforced: true },
      processes: { enforced: true },
      readRate: { enforced: false },
      writeRate: { enforced: false },
    })
  })

  it('is unavailable, with every refusal in words, where nothing is delegated', () => {
    const { found } = detect({ delegated: 'elsewhere', handed: { '': all, 'user.slice': all, [service]: all }, own: service })
    const refusal = (folder: string) => `${join(root, folder)} may not be written by this user`
    const why = [refusal(service), refusal('user.slice'), `${root} may not be written by this user`].join('; ')
    const none = { enforced: false, why }
    expect(found).toEqual({ unavailable: why, enforces: { memory: none, cpus: none, cpuTime: none, processes: none, readRate: none, writeRate: none } })
  })

  it('is unavailable where other processes share the only group that is delegated', () => {
    const { found } = detect({ delegated: service, handed: { '': all, 'user.slice': all }, own: service, others: [1] })
    expect((found as { unavailable: string }).unavailable).toContain(`${join(root, service)} has processes in it, so it cannot hand controllers down`)
  })

  it('makes room for itself where this process is alone in the group that is delegated', () => {
    const { found } = detect({ delegated: service, handed: { '': all, 'user.slice': all }, own: service })
    expect((found as Cgroups).enforces.memory).toMatchObject({ enforced: true })
    expect(text(cellOf(service, 'engine'), 'cgroup.procs')).toBe(`${process.pid}`)
  })
})

describe('a cell in version 2', () => {
  const handed = { '': all, 'user.slice': all, [service]: all }
  const base = `${service}/app.slice`

  it('has limits on its guests and headroom above them', async () => {
    const { found } = detect({ delegated: service, handed })
    const cell = await (found as Cgroups).create(order)
    cell.settle()
    const folder = cellOf(base)
    const files = ['memory.max', 'memory.swap.max', 'cpu.max', 'pids.max']
    expect(files.map((name) => text(folder, 'guest', name))).toEqual([`${64 * MiB}`, '0', '50000 100000', '20'])
    expect(files.map((name) => text(folder, name))).toEqual([`${64 * MiB + 16 * MiB + 20 * 256 * 1024}`, '0', 'max 100000', '56'])
    expect(cell.stated()).toEqual({ memoryBytes: 64 * MiB, cpus: 0.5, processes: 20 })
  })

  it('is entered above both, so that its namespace holds both, and what entered is put beside the guests', async () => {
    const { found, tree, given } = detect({ delegated: service, handed })
    const cell = await (found as Cgroups).create({ ...order, writer: 7 })
    const folder = cellOf(base)
    expect({ joins: cell.joins, guestJoins: cell.guestJoins, runJoins: cell.runJoins }).toEqual({
      joins: [join(folder, 'cgroup.procs')],
      guestJoins: [],
      runJoins: [{ folder: join(folder, 'guest'), file: 'cgroup.procs' }],
    })
    for (const pid of ['4711', '4712']) tree.write(cell.joins[0] as string, pid)
    cell.settle()
    expect([text(folder, 'cgroup.procs'), text(folder, 'warden/cgroup.procs')]).toEqual(['', '4711\n4712'])
    expect([text(folder, 'cgroup.subtree_control'), text(folder, 'guest/cgroup.subtree_control')]).toEqual(['memory cpu pids io', 'memory pids'])
    const run = cell.beginRun({ memoryBytes: undefined, processes: undefined })
    expect(Object.fromEntries(given)).toEqual({ [join(folder, 'cgroup.procs')]: 7, [join(folder, `guest/${run.name}/cgroup.procs`)]: 7 })
    expect(cell.places(run.name)).toEqual([join(folder, 'guest', run.name as string)])
  })

  it('tells what its guests used', async () => {
    const { found } = detect({ delegated: service, handed })
    const cell = await (found as Cgroups).create(order)
    cell.settle()
    const guest = join(cellOf(base), 'guest')
    const said = { 'memory.peak': '1048576\n', 'memory.current': '4096\n', 'pids.peak': '7\n', 'pids.current': '2\n' }
    for (const [name, value] of Object.entries(said)) writeFileSync(join(guest, name), value)
    writeFileSync(join(guest, 'cpu.stat'), 'usage_usec 2500\nuser_usec 2000\nsystem_usec 500\n')
    // What is counted of the runs too is taken from the runs.
    writeFileSync(join(guest, 'memory.events'), 'low 0\nhigh 0\nmax 12\noom 9\noom_kill 9\noom_group_kill 0\n')
    writeFileSync(join(guest, 'pids.events'), 'max 9\n')
    writeFileSync(join(guest, 'pids.events.local'), 'max 1\n')
    const runs = [1, 2].map((hits) => {
      const run = cell.beginRun({ memoryBytes: undefined, processes: undefined })
      writeFileSync(join(guest, run.name as string, 'memory.events.local'), `oom_kill ${hits}\n`)
      writeFileSync(join(guest, run.name as string, 'pids.events.local'), 'max 3\n')
      return run
    })
    runs[0]?.close()
    expect(cell.usage()).toEqual({ memoryBytes: 4096, memoryPeakBytes: MiB, cpuMs: 2.5, oomKills: 3, processes: 2, processesPeak: 7, processHits: 7 })
  })

  it('is removed with what is left in it, and again quietly', async () => {
    const { found } = detect({ delegated: service, handed })
    const cell = await (found as Cgroups).create(order)
    cell.settle()
    const run = cell.beginRun({ memoryBytes: undefined, processes: undefined })
    writeFileSync(join(cell.places(run.name)[0] as string, 'cgroup.procs'), '123456789')
    run.close()
    await cell.remove()
    await cell.remove()
    expect(existsSync(cellOf(base))).toBe(false)
  })

  it('that the kernel bounds otherwise than asked is refused, and nothing of it stays', async () => {
    const { tree } = detect({ delegated: service, handed })
    const stubborn = { ...tree, write: (file: string, value: string) => (file.endsWith('guest/memory.max') ? undefined : tree.write(file, value)) }
    const texts = { mountinfo: `30 24 0:26 / ${root} rw - cgroup2 cgroup2 rw\n`, cgroup: `0::/${scope}\n` }
    const cell = await (detectCgroups({ tree: stubborn, texts, devices }) as Cgroups).create(order)
    expect(() => cell.settle()).toThrow(expect.objectContaining({ code: 'unsupported', message: 'the kernel states other limits than it was given: memory' }))
    await cell.remove()
    expect(existsSync(cellOf(base))).toBe(false)
  })

  it('of a dead owner is swept wherever it is, that of a living one or of another user is not', async () => {
    const { found, tree } = detect({ delegated: service, handed })
    await (found as Cgroups).create(order)
    const dead = join(root, service, `glovebox.${ownerName({ ...currentOwner(), startTime: '1' })}.${id}`)
    tree.make(dead)
    for (const name of ['warden', 'guest', 'guest/r1', 'guest/r2']) tree.make(join(dead, name))
    // As another user's engine left it.
    const foreign = join(root, `glovebox.${ownerName({ ...currentOwner(), startTime: '1' })}.${id}`)
    mkdirSync(join(foreign, 'guest'), { recursive: true })
    expect(await (found as Cgroups).sweep()).toBe(1)
    expect([existsSync(dead), existsSync(cellOf(base)), existsSync(join(foreign, 'guest'))]).toEqual([false, true, true])
  })
})
