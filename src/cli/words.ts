import type { LimitName } from '../contract/limits.js'
import type { Outcome } from '../contract/run.js'

const units = [
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
] as const

/** 10485760 → '10 MiB'; a size that is no round number of a unit keeps one decimal, rounded down: a bound that is told can be asked for. */
export function bytesInWords(bytes: number): string {
  for (const [name, size] of units) {
    if (bytes < size) continue
    return `${Math.floor((bytes / size) * 10) / 10} ${name}`
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
      return outcome.by === 'cpu'
        ? `${program} was stopped: it used more processor time than ${durationInWords(outcome.limitMs)} (--cpu-time)`
        : `${program} was stopped: it ran longer than ${durationInWords(outcome.limitMs)} (--timeout)`
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

const mostColumns = 150
const leastReason = 20

/** The one line that names the default limits which nothing holds here, short enough to stay one; `doctor` has the whole reasons. */
export function explainUnenforced(unenforced: readonly { readonly limit: LimitName; readonly why: string }[]): string | undefined {
  if (unenforced.length === 0) return undefined
  const limitsByReason = new Map<string, LimitName[]>()
  for (const { limit, why } of unenforced) limitsByReason.set(why, [...(limitsByReason.get(why) ?? []), limit])
  const line = (most: number): string =>
    `not enforced here: ${[...limitsByReason].map(([why, limits]) => `${limits.join(', ')} (${shorten(why, most)})`).join('; ')}`
  const room = mostColumns - line(0).length
  return line(Math.max(leastReason, ...fittingLength([...limitsByReason.keys()], room)))
}

/** How long each text may be so that all fit into `room`: what short ones leave is the others'. Empty when one length is as good as another. */
function fittingLength(texts: readonly string[], room: number): number[] {
  const [shortest, ...rest] = [...texts].sort((a, b) => a.length - b.length)
  if (shortest === undefined) return []
  const share = Math.floor(room / texts.length)
  return shortest.length > share ? [share] : [shortest.length, ...fittingLength(rest, room - shortest.length)]
}

/** So much of a long path at least is told. */
const leastPath = 8

/** At a word: half of a path is another path. Where the first word is that long itself, what is said of it is worth more than its end. */
function shorten(text: string, most: number): string {
  if (text.length <= most) return text
  const kept = text.slice(0, Math.max(0, most))
  const end = kept.lastIndexOf(' ')
  const said = text.slice((text.indexOf(' ') + 1 || text.length + 1) - 1)
  if (end === -1 && said !== '' && said.length + leastPath < most) return `${text.slice(0, most - said.length - 1)}…${said}`
  return `${(end > 0 ? kept.slice(0, end) : kept.slice(0, -1)).replace(/[\s,;:]+$/, '')}…`
}

/** The same with its milliseconds to the microsecond, which is all that a clock can mean. */
export function roundTimes<Times extends object>(times: Times): Times {
  const round = (name: string, value: unknown): unknown => (name.endsWith('Ms') && typeof value === 'number' ? Math.round(value * 1000) / 1000 : value)
  return Object.fromEntries(Object.entries(times).map(([name, value]) => [name, round(name, value)])) as Times
}

const spans = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
] as const

/** 5_400_000 → '1.5 h': how long ago, or until when, for a glance. */
export function spanInWords(ms: number): string {
  const [name, size] = spans.find(([, each]) => ms >= each) ?? ['s', 1000]
  const count = Math.max(0, ms) / size
  return `${count < 10 && name !== 's' ? Math.floor(count * 10) / 10 : Math.floor(count)} ${name}`
}
