import type { Group } from './cgroup-files.js'
import type { Controller } from './cgroup-mounts.js'
import { type CgroupRates, blkio1, io2 } from './cgroup-rates.js'

export interface CgroupLimits {
  readonly memoryBytes: number
  readonly cpus: number
  readonly processes: number
  /** Undefined: no device is held to a rate. */
  readonly rates?: CgroupRates | undefined
}

/** What the kernel states; undefined where it states no bound. */
export interface StatedLimits {
  readonly memoryBytes: number | undefined
  readonly cpus: number | undefined
  readonly processes: number | undefined
  readonly readBytesPerSecond: number | undefined
  readonly writeBytesPerSecond: number | undefined
}

/** Of a group and all that is or was beneath it. */
export interface CgroupUsage {
  readonly memoryPeakBytes: number | undefined
  readonly cpuMs: number | undefined
  readonly processesPeak: number | undefined
}

export interface CgroupNow {
  readonly memoryBytes: number | undefined
  readonly processes: number | undefined
}

/** Of a group alone, without those beneath. */
export interface CgroupHits {
  /** Processes killed for want of memory. */
  readonly oomKills: number | undefined
  /** How often a fork met the limit. */
  readonly processHits: number | undefined
}

/** One controller in one version: the file that must be there, how a limit is set and read, and what it counts. */
export interface ControllerFiles {
  readonly needs: string
  /** Throws the kernel's EBUSY when more memory than that is in use and none can be reclaimed. */
  limit(group: Group, limits: CgroupLimits): void
  /** What a group beneath needs so that the limits above it hold for all that it does. */
  inherit?(group: Group): void
  stated(group: Group, limits: CgroupLimits): Partial<StatedLimits>
  usage(group: Group): Partial<CgroupUsage>
  now(group: Group): Partial<CgroupNow>
  hits(group: Group): Partial<CgroupHits>
  /** Lets an empty group that a run or a cell is done with count as a new one does. False where it cannot, or what was done in it would show. */
  renew?(group: Group): boolean
}

const countsNothing = { usage: () => ({}), now: () => ({}), hits: () => ({}) } as const

const periodUs = 100_000
/** Version 1 writes "no limit" as the largest page-aligned number. */
const unlimited = 2 ** 62

/** What sockets may hold besides the limit, as a share of it: version 1 counts their buffers apart, so the limit alone would not bound them. */
const socketShare = 1 / 16
const leastSocketBytes = 2 ** 20

/** What the kernel gives back of a program's memory only later. More than that would be counted as the next run's. */
const mostLeftBytes = 2 ** 20

const memory1: ControllerFiles = {
  // Without this file the kernel would let socket buffers grow without bound.
  needs: 'memory.kmem.tcp.limit_in_bytes',
  limit(group, { memoryBytes }) {
    const withSwap = 'memory.memsw.limit_in_bytes'
    const hasSwap = group.has(withSwap)
    // Neither may ever be above the other.
    const isRaised = hasSwap && memoryBytes > (group.number(withSwap) ?? 0)
    if (isRaised) group.write(withSwap, `${memoryBytes}`)
    group.write('memory.limit_in_bytes', `${memoryBytes}`)
    if (hasSwap && !isRaised) group.write(withSwap, `${memoryBytes}`)
    if (!hasSwap) group.write('memory.swappiness', '0')
    group.write('memory.kmem.tcp.limit_in_bytes', `${Math.max(leastSocketBytes, Math.round(memoryBytes * socketShare))}`)
  },
  // The kernel counts the sockets of a group only once that group was given a limit of its own; -1 is none.
  inherit: (group) => group.write('memory.kmem.tcp.limit_in_bytes', '-1'),
  stated(group) {
    const sizes = ['memory.limit_in_bytes', 'memory.memsw.limit_in_bytes'].map((name) => group.number(name))
    const bytes = Math.max(...sizes.map((size) => size ?? 0))
    const sockets = group.number('memory.kmem.tcp.limit_in_bytes') ?? unlimited
    return { memoryBytes: bytes > 0 && bytes < unlimited && sockets < unlimited ? bytes : undefined }
  },
  usage: (group) => ({ memoryPeakBytes: group.number('memory.memsw.max_usage_in_bytes') ?? group.number('memory.max_usage_in_bytes') }),
  now: (group) => ({ memoryBytes: group.number('memory.memsw.usage_in_bytes') ?? group.number('memory.usage_in_bytes') }),
  hits: (group) => ({ oomKills: group.keyed('memory.oom_control', 'oom_kill') }),
  renew(group) {
    // A kernel that tells no kills is asked for none of this.
    if (group.keyed('memory.oom_control', 'oom_kill') !== 0) return false
    const withSwap = 'memory.memsw.max_usage_in_bytes'
    const peak = group.number(withSwap) === undefined ? 'memory.max_usage_in_bytes' : withSwap
    group.write(peak, '0')
    return (group.number(peak) ?? unlimited) <= mostLeftBytes
  },
}

const memory2: ControllerFiles = {
  needs: 'memory.max',
  limit(group, { memoryBytes }) {
    if ((group.number('memory.current') ?? 0) > memoryBytes) squeeze(group, memoryBytes)
    group.write('memory.max', `${memoryBytes}`)
    if (group.has('memory.swap.max')) group.write('memory.swap.max', '0')
  },
  stated: (group) => ({ memoryBytes: group.number('memory.max') }),
  usage: (group) => ({ memoryPeakBytes: group.number('memory.peak') }),
  now: (group) => ({ memoryBytes: group.number('memory.current') }),
  hits: (group) => ({ oomKills: group.keyed('memory.events.local', 'oom_kill') ?? group.keyed('memory.events', 'oom_kill') }),
}

/** A smaller memory.max kills at once what does not fit; memory.high only reclaims, so it tells beforehand. */
function squeeze(group: Group, memoryBytes: number): void {
  group.write('memory.high', `${memoryBytes}`)
  const left = group.number('memory.current') ?? 0
  group.write('memory.high', 'max')
  if (left > memoryBytes) throw Object.assign(new Error(`EBUSY: ${left} bytes are in use`), { code: 'EBUSY' })
}

const cpu1: ControllerFiles = {
  ...countsNothing,
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
  // Setting it gives back what was used of it in this period.
  renew(group) {
    const quota = group.number('cpu.cfs_quota_us')
    if (quota !== undefined) group.write('cpu.cfs_quota_us', `${quota}`)
    return quota !== undefined
  },
}

const cpu2: ControllerFiles = {
  ...countsNothing,
  needs: 'cpu.max',
  limit: (group, { cpus }) => group.write('cpu.max', `${Math.round(cpus * periodUs)} ${periodUs}`),
  stated(group) {
    const match = /^(\d+) (\d+)$/.exec(group.read('cpu.max') ?? '')
    return { cpus: match ? Number(match[1]) / Number(match[2]) : undefined }
  },
}

const limitsNothing = { limit: () => undefined, stated: () => ({}) } as const

const cpuacct1: ControllerFiles = {
  ...countsNothing,
  ...limitsNothing,
  needs: 'cpuacct.usage',
  usage(group) {
    const nanoseconds = group.number('cpuacct.usage')
    return { cpuMs: nanoseconds === undefined ? undefined : nanoseconds / 1e6 }
  },
  renew(group) {
    group.write('cpuacct.usage', '0')
    return group.number('cpuacct.usage') === 0
  },
}

/** Bounds nothing: it stops and lets go. In version 2 every group can do so without a controller. */
const freezer1: ControllerFiles = { ...countsNothing, ...limitsNothing, needs: 'freezer.state' }

/** No controller of version 2: every group there has its processor time counted. */
const cpuacct2: ControllerFiles = {
  ...countsNothing,
  ...limitsNothing,
  needs: 'cpu.stat',
  usage(group) {
    const microseconds = group.keyed('cpu.stat', 'usage_usec')
    return { cpuMs: microseconds === undefined ? undefined : microseconds / 1e3 }
  },
}

/** Version 1, and version 2 before Linux 6.11, count a refused fork where it was tried; later it is where the limit is, and `local` says so. */
const pids: ControllerFiles = {
  needs: 'pids.max',
  limit: (group, { processes }) => group.write('pids.max', `${processes}`),
  stated: (group) => ({ processes: group.number('pids.max') }),
  usage: (group) => ({ processesPeak: group.number('pids.peak') }),
  now: (group) => ({ processes: group.number('pids.current') }),
  hits: (group) => ({ processHits: group.keyed('pids.events', 'max') }),
}

/** The most processes cannot be told anew; but every run has one, so that one which had no more leaves nothing to tell. */
const pids1: ControllerFiles = {
  ...pids,
  renew: (group) => (group.number('pids.peak') ?? 1) <= 1 && group.keyed('pids.events', 'max') === 0,
}

const pids2: ControllerFiles = {
  ...pids,
  hits: (group) => ({ processHits: group.keyed('pids.events.local', 'max') ?? group.keyed('pids.events', 'max') }),
}

export const controllerFiles: Readonly<Record<1 | 2, Readonly<Partial<Record<Controller, ControllerFiles>>>>> = {
  1: { memory: memory1, cpu: cpu1, cpuacct: cpuacct1, pids: pids1, blkio: blkio1, freezer: freezer1 },
  2: { memory: memory2, cpu: cpu2, cpuacct: cpuacct2, pids: pids2, io: io2 },
}
