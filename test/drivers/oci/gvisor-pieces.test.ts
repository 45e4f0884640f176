import { describe, expect, test } from 'vitest'
import type { CellPlan } from '../../../src/cell/arguments.js'
import { defaultLimits } from '../../../src/contract/limit-words.js'
import { enterAsOne, sentryBytes, withSentry } from '../../../src/cell/gvisor/cgroup.js'
import { sandboxArgv, sandboxConfig } from '../../../src/drivers/oci/gvisor-config.js'
import { processesOf } from '../../../src/cell/gvisor/abilities.js'
import { observeTold, parseToldOfCell, parseToldStatus } from '../../../src/cell/gvisor/told.js'
import { wordsOfRunsc } from '../../../src/cell/gvisor/words.js'
import type { CellCgroup } from '../../../src/sys/cell-cgroup.js'
import type { MountSource } from '../../../src/sys/mount-source.js'

const source = (path: string): MountSource => ({ path, descriptor: 9, uid: 0, gid: 0, isOwnGroup: false }) as unknown as MountSource
const plan: CellPlan = {
  spec: {
    id: 'abcdefghij0123456789',
    root: { name: 'host', binds: [{ source: '/usr', target: '/usr' }], symlinks: [{ path: '/bin', target: 'usr/bin' }], shell: '/bin/sh', env: {} },
    limits: { ...defaultLimits, inodes: 25_600, fileSizeBytes: 104_857_600, stated: [] },
    rootMode: 'readonly',
    mounts: [
      { source: '/srv/a', target: '/workspace/a', mode: 'ro' },
      { source: '/srv/b', target: '/data', mode: 'ro' },
    ],
    commands: undefined,
    network: { direct: false },
  },
  ids: { kind: 'range', base: 0x78000000, size: 65_536 },
  programs: { launcher: '/opt/glovebox/launcher', warden: '/opt/glovebox/warden' },
  ownerPid: 4711,
  sources: [source('/srv/a'), source('/srv/b')],
  cgroups: { joins: ['/sys/fs/cgroup/memory/c/guest/run-1/tasks'], guestJoins: [], runJoins: [] },
}

function lines(argv: readonly string[]): string {
  return `${argv.join(' ').replaceAll(/ (?=--)/g, '\n')}\n`
}

test('a sandbox is built by exactly these arguments', async () => {
  const runtime = [
    '/usr/bin/runsc',
    '--root',
    '/run/glovebox/bundles/x/state',
    '--platform=ptrace',
    'run',
    '--detach',
    '--bundle',
    '/run/glovebox/bundles/x',
    plan.spec.id,
  ]
  await expect(lines(sandboxArgv(plan, runtime))).toMatchFileSnapshot('./golden/runsc.txt')
})

test('a sandbox is told by exactly this document', async () => {
  await expect(`${JSON.stringify(sandboxConfig({ plan }), undefined, 2)}\n`).toMatchFileSnapshot('./golden/runsc-config.json')
})

const status = `Name:\tsh
State:\tS (sleeping)
Tgid:\t4
Uid:\t1000\t1000\t1000\t1000
Gid:\t1000\t1000\t1000\t1000
Groups:\t2147483655 
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t0000000000000000
Seccomp:\t2
`
const limits =
  'Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 4096                 files     \n'

describe('what gVisor tells of a program', () => {
  const valueOf = (text: string, control: string): unknown => observeTold(text, 'full').find((each) => each.control === control)

  test('is its word and no proof, without the mark of the run', () => {
    expect(valueOf(`${status}\0\0`, 'ids')).toEqual({
      control: 'ids',
      value: { uid: 1000, gid: 1000, groups: [] },
      evidence: 'runtime',
      source: "gVisor's /proc, read by the warden",
    })
    expect(observeTold(`${status}\0\0`, 'full').filter(({ evidence }) => evidence === 'kernel' || evidence === 'probe')).toEqual([])
  })

  test('is not believed where a program gave itself the name of a field', () => {
    const named = status.replace('Name:\tsh', 'Name:\tx\nUid:\t0\t0\t0\t0')
    expect(parseToldStatus(named).uids).toEqual([1000, 1000, 1000, 1000])
  })

  test('that is missing is asserted where every version may lack it, and an error otherwise', () => {
    expect(valueOf(`${status}\0\0`, 'no-new-privs')).toMatchObject({ value: null, evidence: 'asserted' })
    expect(valueOf(`${status}NoNewPrivs:\t0\n\0\0`, 'no-new-privs')).toMatchObject({ value: false, evidence: 'runtime' })
    expect(valueOf(`${status}\0\0`, 'rlimits')).toMatchObject({ value: null, evidence: 'asserted' })
    expect(valueOf(`${status}\0${limits}\0`, 'rlimits')).toMatchObject({ value: { files: [1024, 4096] }, evidence: 'runtime' })
    expect(() => parseToldStatus(status.replace(/^Seccomp:.*$/m, ''))).toThrow('gVisor tells no Seccomp of a process')
  })

  test('of ids that differ is a text that no demand is met by', () => {
    expect(valueOf(`${status.replace('Uid:\t1000\t1000', 'Uid:\t1000\t0')}\0\0`, 'ids')).toMatchObject({
      value: 'uids 1000 0 1000 1000 and gids 1000 1000 1000 1000 are not one each',
    })
  })

  test('of the cell is taken apart in the warden’s order', () => {
    const told = parseToldOfCell(`Linux version 4.4.0\n\0[ 0.0] Starting gVisor...\n\0mounts\0lo\0${status}\0`)
    expect([told.version, told.mounts, told.interfaces, told.status.seccomp]).toEqual(['Linux version 4.4.0', 'mounts', 'lo', 2])
    expect(told.log).toContain('Starting gVisor')
  })
})

describe('the groups of a sandbox', () => {
  const calls: unknown[] = []
  let usage = { oomKills: 0, cpuMs: 100 }
  const inner = {
    joins: ['/m/c/tasks'],
    guestJoins: ['/cpu/c/tasks'],
    runJoins: [{ folder: '/m/c/guest', file: 'tasks' }],
    settle: () => calls.push('settle'),
    beginRun: () => ({ name: 'run-1', close: () => calls.push('close') }),
    stated: () => ({ memoryBytes: 512 + sentryBytes, cpus: 1, processes: 4608 }),
    limit: (limits: unknown) => calls.push(limits),
    usage: () => usage,
    freeze: () => Promise.resolve(calls.push('freeze')),
  } as unknown as CellCgroup

  test('are entered as one run, which bears the memory of gVisor besides what was asked for', () => {
    const { cgroup, folders } = enterAsOne(inner)
    expect([cgroup.joins, cgroup.guestJoins, cgroup.runJoins]).toEqual([['/cpu/c/tasks', '/m/c/guest/run-1/tasks'], [], []])
    expect(folders).toEqual(['/cpu/c', '/m/c/guest/run-1'])
    expect(cgroup.stated()).toMatchObject({ memoryBytes: 512, processes: undefined })
    cgroup.limit({ memoryBytes: 1024, cpus: 2, processes: 10 })
    expect(calls.at(-1)).toEqual(withSentry({ memoryBytes: 1024, cpus: 2, processes: 10 }))
    expect(withSentry({ memoryBytes: 1024, cpus: 2, processes: 10 })).toMatchObject({ memoryBytes: 1024 + sentryBytes, cpus: 2 })
  })

  test('hold no run by itself, and freeze all or nothing', () => {
    const { cgroup } = enterAsOne(inner)
    expect(() => cgroup.beginRun({ memoryBytes: 1, processes: undefined })).toThrow(/limits.memory of a single run/)
    expect(() => cgroup.beginRun({ memoryBytes: undefined, processes: 1 })).toThrow(/limits.processes of a single run/)
    expect(() => cgroup.freeze(['run-7'])).toThrow(/all programs of a sandbox of gVisor stand still, or none/)
    const run = cgroup.beginRun({ memoryBytes: undefined, processes: undefined })
    usage = { oomKills: 1, cpuMs: 150 }
    expect(run.counts()).toMatchObject({ cpuMs: 50, oomKills: 1 })
  })

  test('tell afterwards that memory was used up', () => {
    usage = { oomKills: 0, cpuMs: 0 }
    const { remark, leave } = enterAsOne(inner)
    leave()
    expect(remark()).toBe('')
    usage = { oomKills: 2, cpuMs: 0 }
    leave()
    usage = { oomKills: 0, cpuMs: 0 }
    leave()
    expect(remark()).toMatch(/its memory was used up/)
  })
})

test('the last line of a runsc that failed is told from that of others', () => {
  expect(wordsOfRunsc('running container: creating container: cannot create sandbox: EOF')).toBe(
    'runsc: running container: creating container: cannot create sandbox: EOF',
  )
  expect(wordsOfRunsc('W1117 19:51:05.233399   14565 util.go:64] FATAL ERROR: unknown platform: systrap')).toBe('runsc: unknown platform: systrap')
  expect(wordsOfRunsc('warden: mount disk at /tmp: Invalid argument')).toBeUndefined()
})

test('a number of processes is promised of the versions that keep to it, and of no other', () => {
  expect(['20221219.0 ptrace', '20220815 ptrace', '20221219'].map((version) => processesOf(version).enforced)).toEqual([true, true, true])
  expect(['20240729.0 systrap', 'unknown ptrace', '', '1.2', '202212190'].map((version) => processesOf(version).enforced)).toEqual(
    Array.from({ length: 5 }, () => false),
  )
})
