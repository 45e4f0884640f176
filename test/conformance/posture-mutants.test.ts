import { describe, expect, test } from 'vitest'
import {
  containmentCases,
  type HostView,
  runCases,
  type Subject,
  type SubjectRunOptions,
  type SubjectSandbox,
  type ThreadFacts,
} from '../../src/conformance/index.js'
import { createHostView } from '../../src/verify/host-view.js'
import { createUnwalledSubject } from './subjects/unwalled-subject.js'

/** As the kernel tells of a guest's thread in a cell of bwrap's, as root. */
const good: ThreadFacts = {
  pid: 4711,
  tid: 4711,
  command: '/usr/bin/python3',
  status: {
    Uid: '2013266920\t2013266920\t2013266920\t2013266920',
    Gid: '2013266920\t2013266920\t2013266920\t2013266920',
    Groups: '',
    NSpid: '4711\t3',
    CapInh: '0000000000000000',
    CapPrm: '0000000000000000',
    CapEff: '0000000000000000',
    CapBnd: '0000000000000000',
    CapAmb: '0000000000000000',
    NoNewPrivs: '1',
    Seccomp: '2',
    Seccomp_filters: '2',
    TracerPid: '0',
  },
  namespaces: Object.fromEntries(['pid', 'net', 'mnt', 'ipc', 'uts', 'user', 'cgroup'].map((kind) => [kind, `${kind}:[1]`])),
  mounts: ['30 29 0:50 / / ro,nosuid,nodev - overlay overlay ro', '31 30 0:51 /w /workspace rw,nosuid,nodev - tmpfs tmpfs rw'],
  descriptors: { 0: '/dev/null', 1: 'pipe:[11]', 2: 'pipe:[12]' },
  limits: { 'Max core file size': ['0', '0'], 'Max open files': ['1024', '1024'] },
  uidMap: '0 2013265920 65536',
  gidMap: '0 2013265920 65536',
  environment: ['PATH=/usr/bin', 'HOME=/home/user'],
  cgroups: ['4:memory:/glovebox.1.x/guest', '3:pids:/glovebox.1.x/guest'],
  oomScoreAdj: '0',
}

type Change = (facts: ThreadFacts, host: HostView) => Partial<ThreadFacts>

const statusOf =
  (change: Readonly<Record<string, string>>): Change =>
  ({ status }) => ({ status: { ...status, ...change } })
const namespaceOf =
  (kind: string): Change =>
  ({ namespaces }, host) => ({ namespaces: { ...namespaces, [kind]: host.namespaces[kind] ?? '' } })

/** What could be wrong with how a program was started, and the cases that have to say so. */
const misconfigurations: readonly (readonly [name: string, caughtBy: readonly string[], change: Change])[] = [
  ['an added capability', ['capabilities'], statusOf({ CapEff: '0000000000200000', CapPrm: '0000000000200000', CapBnd: '0000000000200000' })],
  ['a capability that is only inherited', ['capabilities'], statusOf({ CapInh: '0000000000000400' })],
  ["the host's process namespace", ['namespaces'], namespaceOf('pid')],
  ["the host's network", ['namespaces'], namespaceOf('net')],
  ["the host's users", ['namespaces'], namespaceOf('user')],
  ['a root that can be written to', ['root-read-only'], ({ mounts }) => ({ mounts: [(mounts[0] ?? '').replace('ro,nosuid', 'rw,nosuid'), mounts[1] ?? ''] })],
  [
    'a folder of the host mounted to be written to',
    ['mounts'],
    ({ mounts }) => ({ mounts: [...mounts, '32 30 254:0 /srv /srv rw,relatime - ext4 /dev/vda rw'] }),
  ],
  ['no filter', ['filter'], statusOf({ Seccomp: '0', Seccomp_filters: '0' })],
  ["no filter but the warden's", ['filter'], statusOf({ Seccomp_filters: '1' })],
  ['new privileges', ['no-new-privileges'], statusOf({ NoNewPrivs: '0' })],
  ['no cgroup of its own', ['groups-of-control'], () => ({ cgroups: ['4:memory:/', '3:pids:/'] })],
  ['a descriptor too many', ['descriptors'], ({ descriptors }) => ({ descriptors: { ...descriptors, 7: '/' } })],
  ['a socket of the engine as a descriptor', ['descriptors'], ({ descriptors }) => ({ descriptors: { ...descriptors, 3: '/var/run/docker.sock' } })],
  [
    "the engine's environment",
    ['environment'],
    ({ environment }, { canaries }) => ({ environment: [...environment, `${canaries.variable.name}=${canaries.variable.value}`] }),
  ],
  ["root's id on the host", ['ids'], statusOf({ Uid: '0\t0\t0\t0' })],
  ["the host's root in the map", ['id-maps'], () => ({ uidMap: '0 0 4294967295' })],
  ['core dumps', ['limits'], ({ limits }) => ({ limits: { ...limits, 'Max core file size': ['0', 'unlimited'] } })],
  ['a score that spares it', ['victims'], () => ({ oomScoreAdj: '-1000' })],
  ['somebody who traces it', ['nobody-traces'], statusOf({ TracerPid: '1' })],
]

const looks = containmentCases.filter(({ id, shares }) => id.startsWith('posture/') && shares)

/** Runs until it is called off: what is looked at is told below. */
function dwell(_: unknown, { signal }: SubjectRunOptions = {}): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () => reject(new Error('called off')))
  })
}

/** Four threads that are as they should be but for this, wherever one looks. */
function misconfigured(host: HostView, change: Change): Subject {
  const facts = { ...good, ...change(good, host) }
  const sandbox = { run: dwell, close: () => Promise.resolve() } as unknown as SubjectSandbox
  const { name, depth, probe } = createUnwalledSubject(host)
  return { name, depth, probe, host: { ...host, look: () => Promise.resolve([facts, facts, facts, facts]) }, open: () => Promise.resolve(sandbox) }
}

describe('a program that is started with', () => {
  for (const [name, caughtBy, change] of misconfigurations) {
    test(`${name} turns ${caughtBy.join(', ')} red and no other`, async () => {
      await using host = await createHostView({ ownFolders: [], sharedFolders: [] })
      const failed = (await runCases(misconfigured(host, change), { cases: looks })).filter(({ verdict }) => verdict !== 'passed')
      expect(failed.map(({ id }) => id).sort()).toEqual(caughtBy.map((id) => `posture/${id}`))
    })
  }

  test('what it should be turns none red', async () => {
    await using host = await createHostView({ ownFolders: [], sharedFolders: [] })
    const results = await runCases(
      misconfigured(host, () => ({})),
      { cases: looks },
    )
    expect(results.filter(({ verdict }) => verdict !== 'passed')).toEqual([])
    expect(results.length).toBeGreaterThan(12)
  })
})
