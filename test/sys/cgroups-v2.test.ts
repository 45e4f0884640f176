import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
  const { tree, populate } = createCgroupModel({ root, delegated: join(root, delegated) })
  const folders = own.split('/').map((_, index, names) => names.slice(0, index).join('/'))
  for (const folder of [...folders, own]) {
    populate(join(root, folder))
    writeFileSync(join(root, folder, 'cgroup.subtree_control'), handed[folder] ?? '')
  }
  writeFileSync(join(root, own, 'cgroup.procs'), [process.pid, ...others].join('\n'))
  const texts = { mountinfo: `30 24 0:26 / ${root} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n`, cgroup: `0::/${own}\n` }
  return { tree, found: detectCgroups({ tree, texts }) }
}

const all = 'cpu memory pids'
const cellOf = (folder: string, name = id): string => join(root, folder, `glovebox.${ownerName(currentOwner())}.${name}`)
const text = (...path: string[]): string => readFileSync(join(...path), 'utf8')

describe('version 2', () => {
  it('is used at the nearest group above this process that may hand controllers down', () => {
    const { found } = detect({ delegated: service, handed: { '': all, 'user.slice': all, [service]: all } })
    const by = (controller: string) => ({ enforced: true, by: `cgroup v2 ${controller} at ${join(root, service, 'app.slice')}` })
    expect((found as Cgroups).enforces).toEqual({ memory: by('memory'), cpus: by('cpu'), processes: by('pids') })
  })

  it('is used further up where the nearest group is not given all controllers', () => {
    const { found } = detect({ delegated: service, handed: { '': all, 'user.slice': all, [service]: 'memory pids' } })
    expect((found as Cgroups).enforces.cpus).toEqual({ enforced: true, by: `cgroup v2 cpu at ${join(root, service)}` })
    expect(text(root, service, 'cgroup.subtree_control')).toBe('memory pids cpu')
  })

  it('enforces what is delegated and says what is not', () => {
    const { found } = detect({ delegated: service, handed: { '': all, 'user.slice': 'memory pids', [service]: 'memory pids' } })
    expect((found as Cgroups).enforces).toMatchObject({
      memory: { enforced: true },
      cpus: { enforced: false, why: `${join(root, service, 'app.slice')} is not given the controller cpu` },
      processes: { enforced: true },
    })
  })

  it('is unavailable, with every refusal in words, where nothing is delegated', () => {
    const { found } = detect({ delegated: 'elsewhere', handed: { '': all, 'user.slice': all, [service]: all }, own: service })
    const refusal = (folder: string) => `${join(root, folder)} may not be written by this user`
    const why = [refusal(service), refusal('user.slice'), `${root} may not be written by this user`].join('; ')
    const none = { enforced: false, why }
    expect(found).toEqual({ unavailable: why, enforces: { memory: none, cpus: none, processes: none } })
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
    const folder = cellOf(base)
    expect({ joins: cell.joins, guestJoins: cell.guestJoins }).toEqual({
      joins: [join(folder, 'warden/cgroup.procs')],
      guestJoins: [join(folder, 'guest/cgroup.procs')],
    })
    const files = ['memory.max', 'memory.swap.max', 'cpu.max', 'pids.max']
    expect(files.map((name) => text(folder, 'guest', name))).toEqual([`${64 * MiB}`, '0', '50000 100000', '20'])
    expect(files.map((name) => text(folder, name))).toEqual([`${64 * MiB + 16 * MiB + 20 * 256 * 1024}`, '0', 'max 100000', '56'])
    expect(cell.stated()).toEqual({ memoryBytes: 64 * MiB, cpus: 0.5, processes: 20 })
  })

  it('tells what its guests used', async () => {
    const { found } = detect({ delegated: service, handed })
    const cell = await (found as Cgroups).create(order)
    const guest = join(cellOf(base), 'guest')
    writeFileSync(join(guest, 'memory.peak'), '1048576\n')
    writeFileSync(join(guest, 'memory.events'), 'low 0\nhigh 0\nmax 12\noom 2\noom_kill 2\noom_group_kill 0\n')
    writeFileSync(join(guest, 'cpu.stat'), 'usage_usec 2500\nuser_usec 2000\nsystem_usec 500\n')
    writeFileSync(join(guest, 'pids.peak'), '7\n')
    writeFileSync(join(guest, 'pids.events'), 'max 3\n')
    expect(cell.usage()).toEqual({ memoryPeakBytes: MiB, cpuMs: 2.5, oomKills: 2, processesPeak: 7, processHits: 3 })
  })

  it('is removed with what is left in it, and again quietly', async () => {
    const { found } = detect({ delegated: service, handed })
    const cell = await (found as Cgroups).create(order)
    writeFileSync(cell.guestJoins[0] as string, '123456789')
    await cell.remove()
    await cell.remove()
    expect(existsSync(cellOf(base))).toBe(false)
  })

  it('that the kernel bounds otherwise than asked is refused, and nothing of it stays', async () => {
    const { found, tree } = detect({ delegated: service, handed })
    const stubborn = { ...tree, write: (file: string, value: string) => (file.endsWith('guest/memory.max') ? undefined : tree.write(file, value)) }
    const texts = { mountinfo: `30 24 0:26 / ${root} rw - cgroup2 cgroup2 rw\n`, cgroup: `0::/${scope}\n` }
    const other = detectCgroups({ tree: stubborn, texts })
    await expect((other as Cgroups).create(order)).rejects.toMatchObject({
      code: 'unsupported',
      message: 'the kernel states other limits than it was given: memory',
    })
    expect(existsSync(cellOf(base))).toBe(false)
    expect(found).toBeDefined()
  })

  it('of a dead owner is swept wherever it is, that of a living one is not', async () => {
    const { found, tree } = detect({ delegated: service, handed })
    await (found as Cgroups).create(order)
    const dead = join(root, service, `glovebox.${ownerName({ ...currentOwner(), startTime: '1' })}.${id}`)
    tree.make(dead)
    for (const name of ['warden', 'guest']) tree.make(join(dead, name))
    expect(await (found as Cgroups).sweep()).toBe(1)
    expect([existsSync(dead), existsSync(cellOf(base))]).toEqual([false, true])
  })
})
