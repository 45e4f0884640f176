import type { CellSpec } from '../contract/driver.js'
import { createCellRecords } from '../sys/cell-records.js'
import type { CellCgroup } from '../sys/cell-cgroup.js'
import type { CgroupLimit, Cgroups, CgroupsUnavailable } from '../sys/cgroups.js'
import { argumentsOf, findProcesses, killProcess } from '../sys/processes.js'
import { createUidRanges, processesIn } from '../sys/uid-ranges.js'
import { type CellIds, cellVariable, cradleId, wardenId } from './arguments.js'
import { cgroupLimits } from './cell-limits.js'
import { createTurnstile, type Turnstile } from './turnstile.js'

/** What a cell has of the host's for as long as it lives. It is on record, so that it is found again whatever happens to its owner. */
export interface Lease {
  readonly ids: CellIds
  readonly cgroup: CellCgroup | undefined
  /** Until then the cgroup has nothing but its names. When it throws, the lease is to be released all the same. */
  readonly buildGroups: () => Promise<void>
  /** The limits that cgroups hold on this machine. */
  readonly holds: readonly CgroupLimit[]
  /** Host pids that are the cell's. */
  readonly remains: () => readonly number[]
  /** So many of the leases end at once. */
  readonly inTurn: Turnstile
  /** When no process of the cell is left. */
  readonly release: () => Promise<void>
}

export interface Lessor {
  lease(spec: CellSpec): Lease
}

export interface LessorOptions {
  readonly hasRanges: boolean
  readonly cgroups: Cgroups | CgroupsUnavailable
}

type IdLease = Pick<Lease, 'ids' | 'remains'> & { readonly release: () => void }

const mostEndings = 32

/** Clears away what dead owners left, then hands out what is free. */
export async function createLessor({ hasRanges, cgroups }: LessorOptions): Promise<Lessor> {
  const leaseIds = hasRanges ? rangeLessor() : singleIdLessor()
  const groups = 'unavailable' in cgroups ? undefined : cgroups
  const holds = groups === undefined ? [] : limitsHeldBy(groups)
  await groups?.sweep()
  const inTurn = createTurnstile(mostEndings)
  return {
    lease(spec) {
      const held = spec.root.hold?.(spec.id)
      let ids: IdLease | undefined
      try {
        ids = leaseIds(spec.id)
        // A program in a liner enters its groups with the id of whoever made it; the warden may open what belongs to any of the cell's ids.
        const writer = ids.ids.kind === 'range' ? ids.ids.base + (spec.liners ? cradleId : wardenId) : undefined
        const planned = groups?.plan({ id: spec.id, writer, ...cgroupLimits(spec, spec.limits) })
        const parts = { ids, cgroup: planned?.cgroup, held }
        const buildGroups = async (): Promise<void> => planned?.build()
        return { ids: ids.ids, cgroup: planned?.cgroup, buildGroups, holds, remains: ids.remains, inTurn, release: () => release(parts) }
      } catch (error) {
        ids?.release()
        held?.[Symbol.dispose]()
        throw error
      }
    },
  }
}

function limitsHeldBy({ enforces }: Cgroups): CgroupLimit[] {
  return (Object.keys(enforces) as CgroupLimit[]).filter((name) => enforces[name].enforced)
}

interface LeaseParts {
  readonly ids: IdLease
  readonly cgroup: CellCgroup | undefined
  readonly held: Disposable | undefined
}

async function release({ ids, cgroup, held }: LeaseParts): Promise<void> {
  try {
    await cgroup?.remove()
  } finally {
    ids.release()
    held?.[Symbol.dispose]()
  }
}

function rangeLessor(): (cellId: string) => IdLease {
  const ranges = createUidRanges()
  return (cellId) => {
    const range = ranges.claim(cellId)
    return { ids: { kind: 'range', base: range.base, size: range.size }, remains: () => processesIn(range), release: range.release }
  }
}

function singleIdLessor(): (cellId: string) => IdLease {
  const records = createCellRecords({ sweep: (cellId) => findRemains(cellId).forEach(killProcess) })
  return (cellId) => ({ ids: { kind: 'single' }, remains: () => findRemains(cellId), release: records.claim(cellId).release })
}

/** bwrap's processes carry the cell's id in their arguments until they become the warden, and a warden ends with its monitor or its channel. */
function findRemains(cellId: string): number[] {
  return findProcesses((pid) => {
    const argv = argumentsOf(pid)
    return argv[argv.indexOf(cellVariable) + 1] === cellId
  })
}
