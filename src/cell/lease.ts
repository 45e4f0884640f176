import type { CellSpec } from '../contract/driver.js'
import { cellRecordsIn, createCellRecords, sweepCellRecords } from '../sys/cell-records.js'
import type { CellCgroup } from '../sys/cell-cgroup.js'
import type { CgroupLimits } from '../sys/cgroup-limits.js'
import type { CgroupLimit, Cgroups, CgroupsUnavailable } from '../sys/cgroups.js'
import { argumentsOf, findOwnProcesses } from '../sys/processes.js'
import type { Sweeper } from '../sys/sweeper.js'
import { createUidRanges, processesIn } from '../sys/uid-ranges.js'
import { type CellIds, cellVariable, cradleId, wardenId } from './arguments.js'
import { cgroupLimits } from './cell-limits.js'
import { LeaseShelf } from './lease-shelf.js'
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
  /** While the cell ends: what of its groups is empty goes already, unless another cell is to have them. */
  readonly clear: () => void
  /** When no process of the cell is left. */
  readonly release: (end?: LeaseEnd) => Promise<void>
}

export interface LeaseEnd {
  /** Whether the kernel itself has told that none of its processes is left: only then may another cell have what this had. */
  readonly isCertain: boolean
}

export interface Lessor {
  lease(spec: CellSpec): Lease
}

export interface LessorOptions {
  readonly hasRanges: boolean
  readonly cgroups: Cgroups | CgroupsUnavailable
  /** What groups are set to, where it is not what the cell is held to. */
  readonly limitsOf?: ((limits: CgroupLimits) => CgroupLimits) | undefined
}

type IdLease = Pick<Lease, 'ids' | 'remains'> & { readonly release: () => void }

const mostEndings = 32
/** So many leases of cells that are over are kept for others. */
const mostKept = 16

/** Clears away what dead owners left, then hands out what is free. */
export async function createLessor({ hasRanges, cgroups, limitsOf = (limits) => limits }: LessorOptions): Promise<Lessor> {
  const groups = 'unavailable' in cgroups ? undefined : cgroups
  // First: what is killed by its group cannot fork meanwhile.
  await groups?.sweep()
  const leaseIds = hasRanges ? rangeLessor() : singleIdLessor()
  const holds = groups === undefined ? [] : limitsHeldBy(groups)
  const inTurn = createTurnstile(mostEndings)
  const shelf = new LeaseShelf<IdLease>({ most: mostKept, remove: ({ ids, planned }) => remove({ ids, cgroup: planned.cgroup }) })
  return {
    lease(spec) {
      const held = spec.root.hold?.(spec.id)
      const key = hasRanges && groups ? keyOf(spec) : undefined
      const kept = shelf.take(key)
      let ids = kept?.ids
      try {
        ids ??= leaseIds(spec.id)
        spec.faults?.('create/ids')
        const planned = kept?.planned ?? groups?.plan({ id: spec.id, writer: writerOf(spec, ids), ...limitsOf(cgroupLimits(spec, spec.limits)) })
        const parts = { ids, cgroup: planned?.cgroup, held, key, shelf, faults: spec.faults }
        spec.faults?.('create/lease')
        const buildGroups = async (): Promise<void> => planned?.build()
        const { remains } = ids
        let isOver = false
        const clear = (): void => {
          // By then the groups may be another cell's.
          if (!isOver && (key === undefined || !shelf.hasRoom)) planned?.cgroup.clear()
        }
        const end = (how?: LeaseEnd): Promise<void> => {
          isOver = true
          return release(parts, how)
        }
        return { ids: ids.ids, cgroup: planned?.cgroup, buildGroups, holds, remains, inTurn, clear, release: end }
      } catch (error) {
        ids?.release()
        held?.[Symbol.dispose]()
        shelf.put(undefined).catch(() => undefined)
        throw error
      }
    },
  }
}

/** What cells have in common that may follow each other in the same ids and groups; undefined for one that is held to more than new groups are. */
function keyOf({ limits, liners }: CellSpec): string | undefined {
  const { memoryBytes, cpus, processes, readBytesPerSecond, writeBytesPerSecond } = limits
  if (readBytesPerSecond !== undefined || writeBytesPerSecond !== undefined) return undefined
  return [memoryBytes, cpus, processes, liners === true].join(' ')
}

/** A program in a liner enters its groups with the id of whoever made it; the warden may open what belongs to any of the cell's ids. */
function writerOf({ liners }: CellSpec, { ids }: IdLease): number | undefined {
  return ids.kind === 'range' ? ids.base + (liners ? cradleId : wardenId) : undefined
}

function limitsHeldBy({ enforces }: Cgroups): CgroupLimit[] {
  return (Object.keys(enforces) as CgroupLimit[]).filter((name) => enforces[name].enforced)
}

interface LeaseParts {
  readonly ids: IdLease
  readonly cgroup: CellCgroup | undefined
  readonly held: Disposable | undefined
  /** Undefined for one that no other cell may have. */
  readonly key: string | undefined
  readonly shelf: LeaseShelf<IdLease>
  readonly faults: CellSpec['faults']
}

async function release({ ids, cgroup, held, key, shelf, faults }: LeaseParts, end: LeaseEnd = { isCertain: false }): Promise<void> {
  const planned = key !== undefined && end.isCertain && shelf.hasRoom ? cgroup?.renewed() : undefined
  try {
    if (key === undefined || planned === undefined) await remove({ ids, cgroup, faults })
  } finally {
    held?.[Symbol.dispose]()
    await shelf.put(key === undefined || planned === undefined ? undefined : { key, ids, planned })
  }
}

async function remove({ ids, cgroup, faults }: Pick<LeaseParts, 'ids' | 'cgroup'> & Partial<Pick<LeaseParts, 'faults'>>): Promise<void> {
  try {
    await cgroup?.remove()
    faults?.('close/groups')
  } finally {
    ids.release()
  }
  faults?.('close/ids')
}

function rangeLessor(): (cellId: string) => IdLease {
  const ranges = createUidRanges()
  return (cellId) => {
    const range = ranges.claim(cellId)
    return { ids: { kind: 'range', base: range.base, size: range.size }, remains: () => processesIn(range), release: range.release }
  }
}

function singleIdLessor(): (cellId: string) => IdLease {
  const records = createCellRecords({ remains: findRemains })
  return (cellId) => ({ ids: { kind: 'single' }, remains: () => findRemains(cellId), release: records.claim(cellId).release })
}

/** What dead owners left running under this user's own id, where cells have no others. */
export function sweepSingleIds(state: string, sweeper: Sweeper): void {
  sweepCellRecords(cellRecordsIn(state), { remains: findRemains, sweeper })
}

/** bwrap's processes carry the cell's id in their arguments until they become the warden, and a warden ends with its monitor or its channel. */
function findRemains(cellId: string): number[] {
  return findOwnProcesses((pid) => {
    const argv = argumentsOf(pid)
    return argv[argv.indexOf(cellVariable) + 1] === cellId
  })
}
