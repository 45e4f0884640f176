import { chownSync } from 'node:fs'
import { cgroupLimits } from '../../cell/cell-limits.js'
import type { Lease } from '../../cell/lease.js'
import { createTurnstile } from '../../cell/turnstile.js'
import { cellVariable, userId } from '../../cell/arguments.js'
import type { CellSpec } from '../../contract/driver.js'
import { createCellRecords } from '../../sys/cell-records.js'
import type { CgroupLimit, Cgroups, CgroupsUnavailable } from '../../sys/cgroups.js'
import { argumentsOf, findOwnProcesses } from '../../sys/processes.js'
import { createUidRanges, processesIn } from '../../sys/uid-ranges.js'
import { EngineCgroup } from './engine-cgroup.js'

/** How this process stands to the engine: it may do everything on the engine's machine; it is an ordinary user there, to whom the engine listens; or it is elsewhere. */
export type Standing = 'root' | 'user' | 'far'

export interface ContainerLease extends Lease {
  readonly standing: Standing
  /** On the host, of everything in the container. */
  readonly hostIds: { readonly uid: number; readonly gid: number }
  /** Where there are no groups of ours. */
  readonly engineCgroup: EngineCgroup | undefined
}

export interface ContainerLessor {
  lease(spec: CellSpec): ContainerLease
}

const mostEndings = 32

/** Each container has an id of the host's that owns nothing, and groups in which its guests are counted; both are on record before it is made. */
export async function createRootLessor(cgroups: Cgroups | CgroupsUnavailable): Promise<ContainerLessor> {
  const ranges = createUidRanges()
  const groups = 'unavailable' in cgroups ? undefined : cgroups
  const holds = groups === undefined ? [] : (Object.keys(groups.enforces) as CgroupLimit[]).filter((name) => groups.enforces[name].enforced)
  await groups?.sweep()
  const inTurn = createTurnstile(mostEndings)
  return {
    lease(spec) {
      const held = spec.root.hold?.(spec.id)
      let range: ReturnType<typeof ranges.claim> | undefined
      try {
        const claimed = ranges.claim(spec.id)
        range = claimed
        const hostId = claimed.base + userId
        const planned = groups?.plan({ id: spec.id, writer: hostId, ...cgroupLimits(spec, spec.limits) })
        const buildGroups = once(async () => {
          await planned?.build()
          // Elsewhere whoever opens the doors is still root.
          for (const door of planned?.cgroup.guestJoins ?? []) chownSync(door, hostId, hostId)
        })
        const release = async (): Promise<void> => {
          try {
            await planned?.cgroup.remove()
          } finally {
            claimed.release()
            held?.[Symbol.dispose]()
          }
        }
        const hostIds = { uid: hostId, gid: hostId }
        return {
          standing: 'root',
          ids: { kind: 'single', host: hostIds },
          hostIds,
          cgroup: planned?.cgroup,
          engineCgroup: undefined,
          buildGroups,
          holds,
          remains: () => processesIn(claimed),
          inTurn,
          clear: () => planned?.cgroup.clear(),
          release,
        }
      } catch (error) {
        range?.release()
        held?.[Symbol.dispose]()
        throw error
      }
    },
  }
}

/** The id of whoever calls, so that what holds around the container can be read from the kernel; without any of its further groups, the engine's among them. */
export function createUserLessor(holds: readonly CgroupLimit[]): ContainerLessor {
  const records = createCellRecords({ remains: findRemains })
  const inTurn = createTurnstile(mostEndings)
  return {
    lease(spec) {
      const held = spec.root.hold?.(spec.id)
      try {
        const record = records.claim(spec.id)
        const hostIds = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
        const engineCgroup = new EngineCgroup(cgroupLimits(spec, spec.limits), holds)
        const release = (): Promise<void> => {
          record.release()
          held?.[Symbol.dispose]()
          return Promise.resolve()
        }
        return {
          standing: 'user',
          ids: { kind: 'single', host: hostIds },
          hostIds,
          cgroup: engineCgroup,
          engineCgroup,
          buildGroups: () => Promise.resolve(),
          holds,
          remains: () => [...new Set([...findRemains(spec.id), ...engineCgroup.processes()])],
          inTurn,
          clear: () => undefined,
          release,
        }
      } catch (error) {
        held?.[Symbol.dispose]()
        throw error
      }
    },
  }
}

/** The launcher has the cell's id among its arguments; the warden ends with it, or with its channel. */
function findRemains(cellId: string): number[] {
  return findOwnProcesses((pid) => {
    const argv = argumentsOf(pid)
    return argv[argv.indexOf(cellVariable) + 1] === cellId
  })
}

function once(act: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => (done ??= act())
}
