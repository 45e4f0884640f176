import type { Group } from './cgroup-files.js'
import type { Controller } from './cgroup-mounts.js'

export interface CgroupLimits {
  readonly memoryBytes: number
  readonly cpus: number
  readonly processes: number
}

/** What the kernel states; undefined where it states no bound. */
export type StatedLimits = { readonly [Name in keyof CgroupLimits]: number | undefined }

export interface CgroupUsage {
  readonly memoryPeakBytes: number | undefined
  readonly cpuMs: number | undefined
  /** Processes killed for want of memory. */
  readonly oomKills: number | undefined
  readonly processesPeak: number | undefined
  /** How often a fork met the limit. */
  readonly processHits: number | undefined
}

/** One controller in one version: the file that must be there, how a limit is set and read, and what it counts. */
export interface ControllerFiles {
  readonly needs: string
  limit(group: Group, limits: CgroupLimits): void
  stated(group: Group): Partial<StatedLimits>
  usage(group: Group): Partial<CgroupUsage>
}

const periodUs = 100_000
/** Version 1 writes "no limit" as the largest page-aligned number. */
const unlimited = 2 ** 62

/** What sockets may hold besides the limit, as a share of it: version 1 counts their buffers apart, so the limit alone would not bound them. */
const socketShare = 1 / 16
const leastSocketBytes = 2 ** 20

const memory1: ControllerFiles = {
  // Without this file the kernel would let socket buffers grow without bound.
  needs: 'memory.kmem.tcp.limit_in_bytes',
  limit(group, { memoryBytes }) {
    group.write('memory.limit_in_bytes', `${memoryBytes}`)
    group.write('memory.kmem.tcp.limit_in_bytes', `${Math.max(leastSocketBytes, Math.round(memoryBytes * socketShare))}`)
    if (group.has('memory.memsw.limit_in_bytes')) group.write('memory.memsw.limit_in_bytes', `${memoryBytes}`)
    else group.write('memory.swappiness', '0')
  },
  stated(group) {
    const sizes = ['memory.limit_in_bytes', 'memory.memsw.limit_in_bytes'].map((name) => group.number(name))
    const bytes = Math.max(...sizes.map((size) => size ?? 0))
    const sockets = group.number('memory.kmem.tcp.limit_in_bytes') ?? unlimited
    return { memoryBytes: bytes > 0 && bytes < unlimited && sockets < unlimited ? bytes : undefined }
  },
  usage: (group) => ({
    memoryPeakBytes: group.number('memory.memsw.max_usage_in_bytes') ?? group.number('memory.max_usage_in_bytes'),
    oomKills: group.keyed('memory.oom_control', 'oom_kill'),
  }),
}

const memory2: ControllerFiles = {
  needs: 'memory.max',
  limit(group, { memoryBytes }) {
    group.write('memory.max', `${memoryBytes}`)
    if (group.has('memory.swap.max')) group.write('memory.swap.max', '0')
  },
  stated: (group) => ({ memoryBytes: group.number('memory.max') }),
  usage: (group) => ({ memoryPeakBytes: group.number('memory.peak'), oomKills: group.keyed('memory.events', 'oom_kill') }),
}

const cpu1: ControllerFiles = {
  needs: 'cpu.cfs_quota_us',
  limit(group, { cpus }) {
    // A new group has the kernel's own period.
    const period = group.number('cpu.cfs_period_us') ?? periodUs
    group.write('cpu.cfs_quota_us', `${Math.round(cpus * period)}`)
  },
  stated(group) {
    const [quota = -1, period = periodUs] = ['cpu.cfs_quota_us', 'cpu.cfs_period_us'].map((name) => group.number(name))
    return { cpus: quota > 0 ? quota / period : undefined }
  },
  usage: () => ({}),
}

const cpuacct1: ControllerFiles = {
  needs: 'cpuacct.usage',
  limit: () => undefined,
  stated: () => ({}),
  usage(group) {
    const nanoseconds = group.number('cpuacct.usage')
    return { cpuMs: nanoseconds === undefined ? undefined : nanoseconds / 1e6 }
  },
}

const cpu2: ControllerFiles = {
  needs: 'cpu.max',
  limit: (group, { cpus }) => group.write('cpu.max', `${Math.round(cpus * periodUs)} ${periodUs}`),
  stated(group) {
    const match = /^(\d+) (\d+)$/.exec(group.read('cpu.max') ?? '')
    return { cpus: match ? Number(match[1]) / Number(match[2]) : undefined }
  },
  usage(group) {
    const microseconds = group.keyed('cpu.stat', 'usage_usec')
    return { cpuMs: microseconds === undefined ? undefined : microseconds / 1e3 }
  },
}

const pids: ControllerFiles = {
  needs: 'pids.max',
  limit: (group, { processes }) => group.write('pids.max', `${processes}`),
  stated: (group) => ({ processes: group.number('pids.max') }),
  usage: (group) => ({ processesPeak: group.number('pids.peak'), processHits: group.keyed('pids.events', 'max') }),
}

/** In version 2 CPU time is counted by `cpu` itself. */
export const controllerFiles: Readonly<Record<1 | 2, Readonly<Partial<Record<Controller, ControllerFiles>>>>> = {
  1: { memory: memory1, cpu: cpu1, cpuacct: cpuacct1, pids },
  2: { memory: memory2, cpu: cpu2, pids },
}
