import type { Case, HostView, InvariantKind } from '../subject.js'

/** What is asked of an installation, in the order in which it is told. */
export const containmentGroups = ['filesystem', 'kernel', 'processes', 'network', 'tenants', 'server', 'advisories', 'posture', 'host'] as const

export type ContainmentGroup = (typeof containmentGroups)[number]

/** Where a guest stands: an ordinary user in the cell, in-cell root, or a run in a liner of its own. */
export type Place = 'user' | 'root' | 'liner'

export const places: readonly Place[] = ['user', 'root', 'liner']

/** Why a case is there, for whoever reads that it did not hold. */
export interface Purpose {
  readonly group: ContainmentGroup
  /** The ids of docs/verify.md that it answers for. */
  readonly threats: readonly string[]
  /** What is done, as a sentence. */
  readonly tries: string
  /** What a failure means, as a sentence. */
  readonly means: string
}

/** Asked of the sandboxes of one driver, from each of these places. */
export interface ContainmentCase extends Case, Purpose {
  readonly places: readonly Place[]
}

/** Something of the machine that is the same before and after everything. */
export interface HostCase extends Purpose {
  readonly id: string
  readonly name: string
  readonly kind: InvariantKind | 'canaries'
}

export type Invariants = Awaited<ReturnType<HostView['invariants']>>
