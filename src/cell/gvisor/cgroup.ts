/**
 * The groups of a cell that is a sandbox of gVisor. For the host's kernel its guests are one thing with what serves them: the sentry, which is their kernel, the
 * gofer, which opens files for it, and the processes in which their code runs. All of it is in the group of one run, below the guests' group that bears the limits.
 */
import { dirname, join } from 'node:path'
import { SandboxError } from '../../contract/errors.js'
import type { CellCgroup } from '../../sys/cell-cgroup.js'
import type { CgroupLimits } from '../../sys/cgroup-limits.js'
import type { CgroupRun } from '../../sys/cgroup-runs.js'

/** What sentry and gofer need for themselves, measured; what of it they do not use the guests may. */
export const sentryBytes = 96 * 2 ** 20
/**
 * Threads of the host's: those of sentry and gofer, and for each process of a guest's those in which it runs. gVisor makes them ahead of asking whether a guest may have
 * one more process, and keeps them: a program that forks against its limit for many seconds takes more and more, until the sandbox ends.
 */
const sentryThreads = 4096
const threadsOfGuest = 8

export function withSentry(limits: CgroupLimits): CgroupLimits {
  return { ...limits, memoryBytes: limits.memoryBytes + sentryBytes, processes: sentryThreads + threadsOfGuest * limits.processes }
}

export interface SandboxGroups {
  /** As the rest of the cell sees its groups. */
  readonly cgroup: CellCgroup
  /** In which every process of the sandbox must be. */
  readonly folders: readonly string[]
  /** That the kernel ended the sandbox for want of memory, also when the groups are gone; empty when it did not. */
  readonly remark: () => string
  /** When nothing of the sandbox is left, or soon will be: while the groups are there. */
  readonly leave: () => void
}

/** Of groups that are built. */
export function enterAsOne(inner: CellCgroup): SandboxGroups {
  // Version 2 gives the guests' group its controllers only now.
  inner.settle()
  const whole = inner.beginRun({ memoryBytes: undefined, processes: undefined })
  const doors = [...inner.guestJoins, ...inner.runJoins.map(({ folder, file }) => join(folder, whole.name ?? '', file))]
  let kills = 0
  const leave = (): void => {
    kills = Math.max(kills, inner.usage().oomKills ?? 0)
    whole.close()
  }
  const cgroup: CellCgroup = {
    ...bound(inner),
    joins: doors,
    guestJoins: [],
    runJoins: [],
    settle: () => undefined,
    beginRun: ({ memoryBytes, processes }) => runWithin(inner, { memoryBytes, processes }),
    stated: () => {
      const stated = inner.stated()
      const { memoryBytes } = stated
      return { ...stated, memoryBytes: memoryBytes === undefined ? undefined : memoryBytes - sentryBytes, processes: undefined }
    },
    limit: (limits) => inner.limit(withSentry(limits)),
    usage: () => ({ ...inner.usage(), processes: undefined, processesPeak: undefined, processHits: undefined }),
    freeze: (besides = []) => {
      if (besides.length > 0) throw new SandboxError('unsupported', 'all programs of a sandbox of gVisor stand still, or none')
      return inner.freeze()
    },
  }
  const remark = (): string => (kills > 0 ? 'its memory was used up, at which a sandbox of gVisor ends as a whole' : '')
  return { cgroup, folders: doors.map((door) => dirname(door)), remark, leave }
}

/** Methods of an object that is not ours to take apart. */
function bound(inner: CellCgroup): CellCgroup {
  return {
    joins: inner.joins,
    guestJoins: inner.guestJoins,
    runJoins: inner.runJoins,
    // Its warden is asked for nothing before it has spoken.
    awaitsSettling: true,
    settle: () => inner.settle(),
    checkBuilt: () => inner.checkBuilt(),
    beginRun: (limits) => inner.beginRun(limits),
    places: (run) => inner.places(run),
    stated: () => inner.stated(),
    limit: (limits) => inner.limit(limits),
    usage: () => inner.usage(),
    freeze: (besides) => inner.freeze(besides),
    thaw: () => inner.thaw(),
    killFrozen: () => inner.killFrozen(),
    kill: () => inner.kill(),
    clear: () => inner.clear(),
    remove: () => inner.remove(),
    renewed: () => inner.renewed(),
  }
}

/**
 * Nothing of the host's counts a run by itself: of each is told what the sandbox used while it lasted, whoever used it. gVisor's own count of processor time goes on while
 * the host holds it to its share.
 */
function runWithin(inner: CellCgroup, { memoryBytes, processes }: Parameters<CellCgroup['beginRun']>[0]): CgroupRun {
  const asked = [memoryBytes !== undefined && 'limits.memory', processes !== undefined && 'limits.processes'].filter((name) => name !== false)
  if (asked.length > 0) throw new SandboxError('unsupported', `${asked.join(', ')} of a single run: gVisor counts all programs of a sandbox as one`)
  let before = inner.usage()
  return {
    name: undefined,
    counts: () => {
      const { oomKills, cpuMs } = inner.usage()
      return {
        memoryPeakBytes: undefined,
        cpuMs: since(cpuMs, before.cpuMs),
        processesPeak: undefined,
        oomKills: since(oomKills, before.oomKills),
        processHits: undefined,
      }
    },
    countFromNow: () => {
      before = inner.usage()
    },
    isPopulated: () => false,
    spareTime: () => undefined,
    close: () => undefined,
  }
}

function since(now: number | undefined, before: number | undefined): number | undefined {
  return now === undefined ? undefined : now - (before ?? 0)
}
