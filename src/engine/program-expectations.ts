import type { StartRequest } from '../channel/index.js'
import type { Expectation, Json, Posture } from '../contract/posture.js'
import { resources } from './start-request.js'

export interface ProgramDemand {
  readonly request: Pick<StartRequest, 'uid' | 'gid' | 'capabilities' | 'rlimits' | 'layers' | 'aside' | 'liner' | 'zygote'>
  /** Those that a program cannot be rid of; none when not given. */
  readonly groups?: readonly number[] | undefined
  /** SHA-256 of the filter that was sent, hexadecimal; undefined where the driver's guests run unfiltered. */
  readonly filterHash: string | undefined
  readonly warden: WardenPosture
}

/** What a program inherits from the first process of its cell. */
export interface WardenPosture {
  /** How many filters it is under; null where the kernel does not count them. */
  readonly filters: number | null
  /** Whether the cell has groups, so that a run is in one. */
  readonly hasCgroup: boolean
}

/** What must be observed of every program at its gate. */
export function programExpectations(demand: ProgramDemand): Expectation[] {
  const { groups = [] } = demand
  const { uid, gid, capabilities } = demand.request
  return [
    { control: 'ids', value: { uid, gid, groups } },
    { control: 'capabilities', value: capabilitySets(capabilities) },
    { control: 'no-new-privs', value: true },
    ...seccompExpectations(demand),
    { control: 'placement', value: { namespaces: placeOf(demand.request), cgroup: demand.warden.hasCgroup ? 'run' : 'none' } },
    { control: 'rlimits', value: rlimitRows(demand.request.rlimits) },
  ]
}

function placeOf({ liner, zygote }: ProgramDemand['request']): string {
  if (zygote) return 'cradle'
  return liner ? 'liner' : 'cell'
}

/** It has no filter of its own, and holds its socket and its library. */
export function zygoteExpectations(demand: ProgramDemand): Expectation[] {
  const { filters } = demand.warden
  const ofPrograms = programExpectations(demand).filter(({ control }) => control !== 'seccomp')
  return [...ofPrograms, { control: 'seccomp', value: { mode: 2, ...(filters !== null && { filters }) } }, { control: 'descriptors', value: [0, 1, 2, 3, 4] }]
}

/** What is read only of the first program of its kind, since every other is started in the same way. */
export function fullProgramExpectations(demand: ProgramDemand): Expectation[] {
  const { filterHash, request } = demand
  return [
    ...programExpectations(demand),
    ...(filterHash === undefined ? [] : [{ control: 'filter', value: filterHash }]),
    { control: 'descriptors', value: descriptorsOf(request) },
  ]
}

/** A worker that is to read layers holds their folder, and no program ever does; a program with an aside holds its two ends. */
function descriptorsOf({ layers, aside }: ProgramDemand['request']): Json {
  if (layers === true) return [0, 1, 2, 3]
  return aside === true ? [0, 1, 2, 3, 4] : [0, 1, 2]
}

function capabilitySets(mask: bigint): Json {
  const set = mask.toString(16)
  return { effective: set, permitted: set, inheritable: '0', bounding: set, ambient: '0' }
}

function seccompExpectations({ filterHash, warden }: ProgramDemand): Expectation[] {
  if (filterHash === undefined) return []
  return [{ control: 'seccomp', value: { mode: 2, ...(warden.filters !== null && { filters: warden.filters + 1 }) } }]
}

const resourceNames = new Map<number, string>(Object.entries(resources).map(([name, number]) => [number, name]))

function rlimitRows(rlimits: StartRequest['rlimits']): Json {
  return Object.fromEntries(rlimits.map(({ resource, soft, hard }) => [resourceNames.get(resource) ?? `resource ${resource}`, [Number(soft), Number(hard)]]))
}

/** By what was read of the cell. */
export function wardenPosture(cell: readonly Posture[]): WardenPosture {
  const observed = cell.flatMap(({ observations }) => observations).find(({ control }) => control === 'warden')?.value
  const told = typeof observed === 'object' && observed !== null ? (observed as { readonly [name: string]: Json }) : {}
  return { filters: typeof told.filters === 'number' ? told.filters : null, hasCgroup: told.cgroup !== 'none' }
}
