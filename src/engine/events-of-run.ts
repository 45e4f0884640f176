import type { MetLimit } from '../contract/lifetimes.js'
import { bytesInUnits, durationInUnits } from '../contract/quantities.js'
import type { Ending } from '../contract/run.js'
import type { EventFacts } from './events.js'

export interface EndedProgram {
  readonly pid: number
  readonly tag: string | undefined
  readonly ending: Ending
}

/** What is told of a program that has ended: the limits that it met, and its end. */
export function eventsOf({ pid, tag, ending }: EndedProgram): EventFacts[] {
  const who = `program ${pid}${tag === undefined ? '' : ` ('${tag}')`}`
  return [
    ...limitsMet(ending).map(([limit, what]): EventFacts => ({ type: 'limited', limit, reason: `${who} ${what}` })),
    { type: 'exit', pid, ...(tag !== undefined && { tag }), ending },
  ]
}

function limitsMet({ outcome, usage, truncated }: Ending): (readonly [MetLimit, string])[] {
  const { memory, processes } = usage.hits
  const isOutput = outcome.kind === 'output-limit'
  const met: (readonly [MetLimit, string] | false)[] = [
    outcome.kind === 'timed-out' && [
      outcome.by === 'cpu' ? 'cpuTime' : 'time',
      `was killed after ${durationInUnits(outcome.limitMs, Math.round)} of ${outcome.by === 'cpu' ? 'processor' : 'wall'} time`,
    ],
    outcome.kind === 'out-of-memory' && ['memory', `was killed for want of memory, at ${bytesInUnits(outcome.limitBytes, Math.floor)}`],
    outcome.kind !== 'out-of-memory' && memory !== null && memory > 0 && ['memory', `lost ${memory} of its processes for want of memory`],
    processes !== null && processes > 0 && ['processes', `was refused ${processes} forks at its limit of processes`],
    isOutput && ['output', `was killed when it had printed ${bytesInUnits(outcome.limitBytes, Math.floor)}`],
    truncated && !isOutput && ['output', 'printed more than is kept'],
  ]
  return met.filter((each) => each !== false)
}
