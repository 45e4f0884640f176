import type { LimitName } from '../contract/limits.js'
import type { Outcome } from '../contract/run.js'

const units = [
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
] as const

/** 10485760 → '10 MiB'; a size that is no round number of a unit keeps one decimal. */
export function bytesInWords(bytes: number): string {
  for (const [name, size] of units) {
    if (bytes < size) continue
    const value = bytes / size
    return `${Number.isInteger(value) ? value : value.toFixed(1)} ${name}`
  }
  return `${bytes} bytes`
}

/** 1500 → '1.5 s'. */
export function durationInWords(ms: number): string {
  if (ms < 1000) return `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`
  if (ms < 120_000) return `${Math.round(ms / 100) / 10} s`
  return `${Math.round(ms / 6000) / 10} min`
}

/** Signals that a person sends or expects; saying that they arrived would only be noise. */
const unremarkable = new Set(['SIGINT', 'SIGPIPE'])

/** The one line about a run that did not end by itself; undefined when there is nothing to say. */
export function explainOutcome(outcome: Outcome, program: string): string | undefined {
  switch (outcome.kind) {
    case 'exited':
      return undefined
    case 'signaled':
      return unremarkable.has(outcome.signal) ? undefined : `${program} was ended by ${outcome.signal}`
    case 'timed-out':
      return `${program} was stopped: it ran longer than ${durationInWords(outcome.limitMs)} (--timeout)`
    case 'out-of-memory':
      return `${program} was killed: it needed more memory than ${bytesInWords(outcome.limitBytes)} (--memory)`
    case 'output-limit':
      return `${program} was killed: it printed more than ${bytesInWords(outcome.limitBytes)} (--output)`
    case 'killed':
      return `${program} was killed: ${outcome.reason}`
    case 'not-started':
      return outcome.reason
  }
}

/** The one line that names the default limits which nothing holds here. */
export function explainUnenforced(unenforced: readonly { readonly limit: LimitName; readonly why: string }[]): string | undefined {
  if (unenforced.length === 0) return undefined
  const limitsByReason = new Map<string, LimitName[]>()
  for (const { limit, why } of unenforced) limitsByReason.set(why, [...(limitsByReason.get(why) ?? []), limit])
  const reasons = [...limitsByReason].map(([why, limits]) => `${limits.join(', ')} (${why})`)
  return `not enforced here: ${reasons.join('; ')}`
}
