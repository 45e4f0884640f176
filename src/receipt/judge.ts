import { SandboxError } from '../contract/errors.js'
import type { Expectation, Json, Observation, Posture } from '../contract/posture.js'
import { describeDifference, isDemanded } from './difference.js'

/** Something that is not as demanded. */
export interface Mismatch {
  readonly control: string
  readonly subject: string
  readonly expected: Json
  /** Null also when nobody observed it; the text tells which. */
  readonly found: Json
  /** One line for people: of large values only what differs. */
  readonly text: string
}

export interface Judged {
  readonly expectations: readonly Expectation[]
  /** One, or all that must be as demanded; none at all means that nobody looked. */
  readonly posture: Posture | readonly Posture[]
}

/**
 * What is not as demanded; empty when all is. Each observation of a control is compared, but for those that are only asserted, which prove nothing either
 * way; a control that is demanded and was not observed at all is a mismatch.
 */
export function judge({ expectations, posture }: Judged): Mismatch[] {
  const postures = 'subject' in posture ? [posture] : posture
  if (postures.length === 0) return expectations.map((expectation) => unobserved(expectation, 'anything'))
  return postures.flatMap(({ subject, observations }) =>
    expectations.flatMap((expectation) => {
      const seen = observations.filter(({ control }) => control === expectation.control)
      if (seen.length === 0) return [unobserved(expectation, subject)]
      return seen.flatMap((observation) => compare(expectation, observation, subject))
    }),
  )
}

/** The error that names what is not as demanded; undefined when all is. */
export function mismatchError(mismatches: readonly Mismatch[]): SandboxError | undefined {
  const [first, ...others] = mismatches
  if (first === undefined) return undefined
  const more = others.length === 0 ? '' : ` (and ${[...new Set(others.map(({ control }) => control))].slice(0, 8).join(', ')})`
  return new SandboxError('not-enforced', `${first.text}${more}`, { hint: 'glovebox doctor' })
}

function unobserved({ control, value }: Expectation, subject: string): Mismatch {
  return { control, subject, expected: value, found: null, text: `${control} of ${subject}: was not observed` }
}

function compare({ control, value }: Expectation, observation: Observation, subject: string): Mismatch[] {
  if (observation.evidence === 'asserted' || isDemanded(value, observation.value)) return []
  const text = `${control} of ${subject}: ${describeDifference(value, observation.value)}`
  return [{ control, subject, expected: value, found: observation.value, text }]
}
