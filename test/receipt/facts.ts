import { createPrivateKey, createPublicKey } from 'node:crypto'
import type { Json, Observation, Posture } from '../../src/contract/posture.js'
import { planSandbox } from '../../src/policy/apply.js'
import { parsePolicy } from '../../src/policy/policy-file.js'
import type { ReceiptFacts } from '../../src/receipt/index.js'

/** A key that everybody knows, so that a signature can be compared with a golden file. */
export const privateKey = keyFrom(7)
export const publicKey = createPublicKey(privateKey)

/** Ed25519 keys are any 32 bytes; before them stands what says so. */
export function keyFrom(byte: number) {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, byte)])
  return createPrivateKey({ key: der, type: 'pkcs8', format: 'der' })
}

export function seen(control: string, value: Json, source = `/proc, for ${control}`): Observation {
  return { control, value, evidence: 'kernel', source }
}

/** What demands exactly what was seen. */
export function demandsOf({ observations }: Posture) {
  return observations.map(({ control, value }) => ({ control, value }))
}

const MiB = 2 ** 20
const nothing = { effective: '0', permitted: '0', inheritable: '0', bounding: '0', ambient: '0' }
const row = (target: string, type: string, access: string) => ({ target, type, access, nosuid: true, nodev: true, noexec: false })

export const cellPosture: Posture = {
  subject: 'cell',
  observations: [
    seen('namespaces', { cgroup: 'own', ipc: 'own', mnt: 'own', net: 'own', pid: 'own', user: 'own', uts: 'own' }),
    seen('uid-map', [[0, 2_013_265_920, 65_536]]),
    seen('gid-map', [[0, 2_013_265_920, 65_536]]),
    seen('interfaces', ['lo']),
    seen('mounts', [row('/', 'tmpfs', 'ro'), row('/data', 'ext4', 'ro'), row('/usr', 'overlay', 'ro'), row('/workspace', 'tmpfs', 'rw')]),
    seen('limit.memory', 512 * MiB, 'memory.limit_in_bytes'),
    seen('limit.cpus', 0.5, 'cpu.cfs_quota_us'),
    seen('limit.processes', 64, 'pids.max'),
    seen('limit.disk', 100 * MiB, 'statfs /workspace'),
    seen('limit.inodes', 25_600, 'statfs /workspace'),
    seen('warden', { capabilities: { ...nothing, bounding: 'c0' }, noNewPrivs: true, seccomp: 2, filters: 1, cgroup: 'cell' }),
  ],
}

export const programPosture: Posture = {
  subject: 'pid 3',
  observations: [
    seen('ids', { uid: 1000, gid: 1000, groups: [] }),
    seen('capabilities', nothing),
    seen('no-new-privs', true),
    seen('seccomp', { mode: 2, filters: 2 }),
    seen('filter', 'ab'.repeat(32), 'PTRACE_SECCOMP_GET_FILTER'),
    seen('placement', { namespaces: 'cell', cgroup: 'run' }),
    seen('rlimits', {
      core: [0, 0],
      cpu: ['unlimited', 'unlimited'],
      fileSize: [50 * MiB, 50 * MiB],
      files: [4096, 4096],
      processes: ['unlimited', 'unlimited'],
    }),
    seen('descriptors', [0, 1, 2]),
    { control: 'commands', value: { refused: '/usr/bin/perl' }, evidence: 'probe', source: 'tried to start it' },
  ],
}

const wished = {
  name: 'review',
  agent: 'reviewer-7',
  template: 'python',
  from: `sha256:${'ab'.repeat(32)}`,
  limits: { time: '5s', fileSize: '50m' },
  env: { TOKEN: 'never shown' },
  mounts: [{ source: '/srv/data', target: '/data' }],
  commands: ['python3'],
}

/** With a policy that caps nothing but the processes. */
export const policy = parsePolicy({ ceiling: { limits: { processes: 64 } } }, 'site.json')
const planned = planSandbox(wished, policy)
export const { spec } = planned

const by = (by: string) => ({ enforced: true, by }) as const

/** All that a receipt is made of, as a driver with everything would tell it. */
export const facts: ReceiptFacts = {
  info: { id: 'abcdefghij0123456789', state: 'running', createdAt: '2026-01-02T03:04:05.000Z', spec, unenforced: [], clamped: [] },
  made: { fresh: 'cell', pooled: false },
  origins: planned.origins,
  policies: policy.layers,
  issuedAt: '2026-01-02T03:04:09.250Z',
  machine: { version: '0.1.0', kernel: '6.18.0', arch: 'x64' },
  probe: {
    driver: 'bwrap',
    tier: 'process',
    isolates: true,
    facts: { bwrap: '0.8.0', mode: 'root' },
    limits: {
      memory: by('cgroup v1'),
      cpus: by('cgroup v1'),
      cpuTime: by('cgroup v1'),
      disk: by('a tmpfs of that size'),
      inodes: by('a tmpfs with so many'),
      fileSize: by('RLIMIT_FSIZE'),
      openFiles: by('RLIMIT_NOFILE'),
      processes: by('cgroup v1'),
      readRate: by('cgroup v1'),
      writeRate: by('cgroup v1'),
    },
  },
  cell: { expectations: demandsOf(cellPosture), postures: [cellPosture] },
  programs: [
    {
      run: { number: 1, user: 'user', environment: ['TOKEN', 'PATH', 'HOME'] },
      expectations: demandsOf(programPosture),
      postures: [programPosture],
    },
  ],
  runs: [
    {
      number: 1,
      commandHash: '12'.repeat(32),
      user: 'user',
      environment: ['TOKEN', 'PATH', 'HOME'],
      startedAt: '2026-01-02T03:04:06.000Z',
      posture: 'full',
      outcome: { kind: 'exited', code: 0 },
      usage: {
        wallMs: 812.123456,
        cpuUserMs: 300.5,
        cpuSystemMs: 20.25,
        memoryPeakBytes: 21 * MiB,
        processesPeak: 2,
        readBytes: 4096,
        writtenBytes: 0,
        outputBytes: 12,
        hits: { memory: 0, processes: 0 },
      },
    },
  ],
  usage: {
    wallMs: 812.123456,
    cpuMs: 320.75,
    memoryBytes: 3 * MiB,
    memoryPeakBytes: 21 * MiB,
    diskBytes: null,
    processes: 1,
    processesPeak: 2,
    readBytes: 4096,
    writtenBytes: 0,
    outputBytes: 12,
    runs: 1,
    hits: { memory: 0, processes: 3 },
  },
  inspected: { processes: 1, threads: 2, complete: true },
  living: [],
}
