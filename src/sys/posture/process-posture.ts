/** What the kernel says of one process or thread, as observations. Of a process that is gone nothing is said: errors are the kernel's. */
import type { Json, Observation } from '../../contract/posture.js'
import { type IdMap, insideOf, parseIdMap } from './id-map.js'
import { differing, type Namespaces, readNamespaces } from './namespaces.js'
import { readProc } from './proc-files.js'
import type { ProcessLimits } from './process-limits.js'
import { type ProcessStatus, parseStatus } from './process-status.js'

/** What a process is held against. */
export interface Surroundings {
  readonly namespaces: Namespaces
  readonly uidMap: IdMap
  readonly gidMap: IdMap
  /** How many filters were there before the cell: those of the process that reads this. */
  readonly inheritedFilters: number
  readonly limitsOf: (text: string) => ProcessLimits
  /** `run` when it is in the groups where it should be, `none` where there are none, otherwise where it is not. */
  readonly cgroupOf: (hostId: number) => string
}

/** What tells one process from all others, and much of what is said of it. */
export interface ProcessFacts {
  readonly status: ProcessStatus
  readonly namespaces: Namespaces
}

export function readFacts(who: number | string): ProcessFacts {
  return { status: parseStatus(readProc(who, 'status')), namespaces: readNamespaces(who) }
}

/** The id that the kernel shows for one that a user namespace does not know. */
export const overflowId = 65_534

export function observeProcess(who: number | string, surroundings: Surroundings, facts = readFacts(who)): Observation[] {
  return describeProcess({ facts, read: (file) => readProc(who, file) }, surroundings)
}

/** A process whose files were read already, or are when they are asked for. */
export interface ProcessFiles {
  readonly facts: ProcessFacts
  readonly read: (file: 'limits' | 'uid_map' | 'gid_map') => string
}

export function describeProcess({ facts, read }: ProcessFiles, surroundings: Surroundings): Observation[] {
  const { status } = facts
  const source = (file: string): string => `/proc/PID/${file}`
  const found = (control: string, value: Json, file: string): Observation => ({ control, value, evidence: 'kernel', source: source(file) })
  const limits = { ...surroundings.limitsOf(read('limits')) }
  return [
    found('ids', idsOf(status, mapsOf({ facts, read }, surroundings)), 'status'),
    found('capabilities', { ...status.capabilities }, 'status'),
    found('no-new-privs', status.noNewPrivs, 'status'),
    found('seccomp', { mode: status.seccomp, filters: ownFilters(status, surroundings.inheritedFilters) }, 'status'),
    found('placement', placementOf(facts, surroundings), 'ns, cgroup'),
    found('rlimits', limits, 'limits'),
  ]
}

export function ownFilters({ filters }: ProcessStatus, inherited: number): number | null {
  return filters === null ? null : filters - inherited
}

type Maps = Pick<Surroundings, 'uidMap' | 'gidMap'>

/** In a liner ids are called otherwise than in the cell, by a map of its own. One that knows more than a single id of the cell's is none of ours. */
function mapsOf({ facts, read }: ProcessFiles, cell: Surroundings): Maps {
  if (facts.namespaces.user === cell.namespaces.user) return cell
  const mapIn = (file: 'uid_map' | 'gid_map', above: IdMap): IdMap => {
    const map = parseIdMap(read(file))
    const [row] = map
    return map.length === 1 && row?.[2] === 1 && insideOf(row[1], above) !== undefined ? map : []
  }
  return { uidMap: mapIn('uid_map', cell.uidMap), gidMap: mapIn('gid_map', cell.gidMap) }
}

function idsOf(status: ProcessStatus, { uidMap, gidMap }: Maps): Json {
  const uid = oneOf(status.uids)
  const gid = oneOf(status.gids)
  if (uid === undefined || gid === undefined) return `uids ${status.uids.join(' ')} and gids ${status.gids.join(' ')} of the host are not one each`
  const groups = new Set(status.groups.map((group) => insideOf(group, gidMap) ?? overflowId))
  return { uid: insideOf(uid, uidMap) ?? overflowId, gid: insideOf(gid, gidMap) ?? overflowId, groups: [...groups].sort((one, other) => one - other) }
}

function oneOf(ids: readonly number[]): number | undefined {
  return ids.every((id) => id === ids[0]) ? ids[0] : undefined
}

const linerNamespaces = ['ipc', 'mnt', 'net', 'pid', 'user', 'uts'].join(', ')

/** `cradle`: with the mounts of whoever makes liners, and otherwise the cell's. */
export function placeOf(own: Namespaces, cell: Namespaces): string {
  const others = differing(own, cell).join(', ')
  if (others === '') return 'cell'
  if (others === linerNamespaces) return 'liner'
  return others === 'mnt' ? 'cradle' : `other ${others}`
}

function placementOf({ status, namespaces: own }: ProcessFacts, { namespaces, cgroupOf }: Surroundings): Json {
  return { namespaces: placeOf(own, namespaces), cgroup: cgroupOf(status.pids[0] ?? 0) }
}
