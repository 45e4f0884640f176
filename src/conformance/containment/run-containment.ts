import { lackOf } from '../needs.js'
import { asRoot, inLiners, sharing } from '../places.js'
import { type CaseResult, runCases } from '../run-cases.js'
import type { Subject } from '../subject.js'
import type { ContainmentCase, Place } from './containment.js'

export interface ContainmentOptions {
  readonly place: Place
  readonly cases: readonly ContainmentCase[]
  readonly signal?: AbortSignal
  readonly onResult?: (result: CaseResult) => void
}

/** Why nothing can be asked from there, in the probe's own words; undefined when it can. */
export function lackOfPlace(place: Place, subject: Subject): string | undefined {
  if (place === 'root') return lackOf('user:root', subject)
  if (place === 'liner') return lackOf('feature:liners', subject)
  return undefined
}

/** Asks each case from that place, one after the other. Those that leave nothing share a sandbox, as long as each of them holds. */
export async function runContainment(subject: Subject, options: ContainmentOptions): Promise<CaseResult[]> {
  const { place, cases, signal, onResult } = options
  const placed = place === 'root' ? asRoot(subject) : place === 'liner' ? inLiners(subject) : subject
  await using shared = sharing(placed)
  const results: CaseResult[] = []
  const here = cases.filter((each) => each.places.includes(place))
  // A sandbox that is shared makes its next run ready in its own time, which those would notice that look at what is left on the host.
  for (const candidate of [...here.filter(({ shares }) => !shares), ...here.filter(({ shares }) => shares)]) {
    signal?.throwIfAborted()
    const ran = await runCases(candidate.shares ? shared.subject : placed, { cases: [candidate] })
    for (const result of ran) {
      if (result.verdict === 'failed') await shared.forget()
      results.push(result)
      onResult?.(result)
    }
  }
  return results
}
