import type { GuestUser } from '../contract/driver.js'
import type { Expectation, Json, Posture } from '../contract/posture.js'
import { type ProgramDemand, programExpectations } from './program-expectations.js'

export interface GuestDemand extends Omit<ProgramDemand, 'request' | 'groups'> {
  readonly users: readonly GuestUser[]
  /** Whether some may be in liners. */
  readonly hasLiners?: boolean
}

/**
 * What must be observed of a process that has been running: all that it was started with, or less. A program may give up capabilities and put itself
 * under more filters.
 */
export function guestExpectations(posture: Posture, { users, hasLiners, ...rest }: GuestDemand): Expectation[] {
  const observed = (control: string): Json => posture.observations.find((each) => each.control === control)?.value ?? null
  const [first] = users
  const user = users.find(({ uid }) => uid === fieldOf(observed('ids'), 'uid')) ?? first
  if (!user) return []
  return programExpectations({ ...rest, request: { ...user, rlimits: [] }, groups: user.groups }).map(({ control, value }) => {
    const found = observed(control)
    if (control === 'capabilities' && hasOnly(found, user.capabilities)) return { control, value: found }
    if (control === 'seccomp' && hasNoFewer(found, value)) return { control, value: found }
    if (control === 'placement' && hasLiners === true && fieldOf(found, 'namespaces') === 'liner') return { control, value: inLiner(value) }
    return { control, value }
  })
}

function inLiner(placement: Json): Json {
  return { namespaces: 'liner', cgroup: fieldOf(placement, 'cgroup') }
}

function hasOnly(sets: Json, mask: bigint): boolean {
  if (typeof sets !== 'object' || sets === null || Array.isArray(sets)) return false
  return Object.values(sets).every((set) => typeof set === 'string' && /^[0-9a-f]+$/.test(set) && (BigInt(`0x${set}`) & ~mask) === 0n)
}

function hasNoFewer(found: Json, wanted: Json): boolean {
  const [have, least] = [fieldOf(found, 'filters'), fieldOf(wanted, 'filters')]
  return fieldOf(found, 'mode') === 2 && (typeof least !== 'number' || (typeof have === 'number' && have >= least))
}

function fieldOf(value: Json, name: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  return (value as { readonly [key: string]: Json })[name] ?? null
}
