import { type Attack, attackOf } from '../attack.js'
import { type ContainmentCase, type ContainmentGroup, places as allPlaces, type Place } from './containment.js'

/** An attack by expressions, with why it is made. */
export interface Assault extends Omit<Attack, 'id' | 'user'> {
  /** Below its group. */
  readonly id: string
  /** Apart by spaces. */
  readonly threats: string
  readonly does: string
  readonly means: string
  /** Everywhere when not given. */
  readonly places?: readonly Place[]
}

export function assaultCases(group: ContainmentGroup, assaults: readonly Assault[]): ContainmentCase[] {
  return assaults.map((assault) => {
    const { id, threats, does, means, places = allPlaces } = assault
    const tried = Object.keys(typeof assault.tries === 'function' ? { some: '' } : assault.tries).length
    return {
      ...attackOf(assault),
      id: `${group}/${id}`,
      // A wall that only some drivers have is missing nowhere else.
      ...(tried > 0 && !assault.needs?.includes('own-kernel') && { denial: true as const }),
      group,
      threats: threats.split(' '),
      tries: does,
      means,
      places,
    }
  })
}

/** What a kernel, a filter or a missing right answers. */
export const denied: readonly string[] = ['EPERM', 'EACCES', 'ENOSYS']
/** The same of files that are not there, or not to be written. */
export const kept: readonly string[] = [...denied, 'EROFS', 'ENOENT', 'EXDEV', 'ENOTDIR']
