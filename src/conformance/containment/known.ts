import { allCases } from '../all-cases.js'
import { type ContainmentCase, type ContainmentGroup, places as allPlaces, type Place } from './containment.js'
import { knownFilesystem } from './known-filesystem.js'
import { knownKernel } from './known-kernel.js'
import { knownNetwork, knownTenants } from './known-network.js'
import { knownProcesses } from './known-processes.js'

/** A promise that every driver is held to in any case, told as an attack. */
export interface KnownCase {
  readonly id: string
  /** Apart by spaces. */
  readonly threats: string
  readonly tries: string
  readonly means: string
  /** Everywhere when the case is an attack by expressions, otherwise as an ordinary user. */
  readonly places?: readonly Place[]
}

function told(group: ContainmentGroup, known: readonly KnownCase[]): ContainmentCase[] {
  return known.map(({ id, threats, tries, means, places }) => {
    const found = allCases.find((each) => each.id === id)
    if (!found) throw new Error(`there is no case ${id}`)
    const isRoots = found.needs?.includes('user:root')
    const usual = isRoots ? (['root'] as const) : found.shares ? allPlaces : (['user'] as const)
    return { ...found, group, threats: threats.split(' '), tries, means, places: places ?? usual }
  })
}

export const knownContainment: readonly ContainmentCase[] = [
  ...told('filesystem', knownFilesystem),
  ...told('kernel', knownKernel),
  ...told('processes', knownProcesses),
  ...told('network', knownNetwork),
  ...told('tenants', knownTenants),
]
