import { chownSync } from 'node:fs'
import { cgroupLimits } from '../../cell/cell-limits.js'
import type { Lease } from '../../cell/lease.js'
import { createTurnstile } from '../../cell/turnstile.js'
import { userId } from '../../cell/arguments.js'
import type { CellSpec } from '../../contract/driver.js'
import type { CgroupLimit, Cgroups, CgroupsUnavailable } from '../../sys/cgroups.js'
import { createUidRanges, processesIn } from '../../sys/uid-ranges.js'

export interface ContainerLease extends Lease {
  /** On the host, of everything in the container; nobody else has it. */
  readonly hostId: number
}

export interface ContainerLessor {
  lease(spec: CellSpec): ContainerLease
}

const mostEndings = 32

/** Each container has an id of the host's that owns nothing, and groups in which its guests are counted; both are on record before it is made. */
export async function createContainerLessor(cgroups: Cgroups | CgroupsUnavailable): Promise<ContainerLessor> {
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
        const ids = { kind: 'single', host: hostId } as const
        return {
          ids,
          hostId,
          cgroup: planned?.cgroup,
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

function once(act: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => (done ??= act())
}
