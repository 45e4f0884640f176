import { constants } from 'node:os'
import type { Outcome } from '../contract/run.js'

/** Exit codes that are ours; every other one is the program's own. */
export const exitCodes = {
  ok: 0,
  timedOut: 124,
  /** Our own failure, a wrong flag included: nothing can be said about the program. */
  failure: 125,
  /** Killed, out of memory, or past its output limit; a line on stderr says which. */
  killed: 137,
} as const

/** What a shell reports for a process that a signal ended. */
export function signalExitCode(signal: string): number {
  const named = (constants.signals as Readonly<Record<string, number>>)[signal]
  // Real-time signals have no name of their own, only a number: SIG40.
  const number = named ?? Number(/^SIG(\d\d)$/.exec(signal)?.[1])
  return Number.isNaN(number) ? exitCodes.killed : 128 + number
}

export function exitCodeOf(outcome: Outcome): number {
  switch (outcome.kind) {
    case 'exited':
    case 'not-started':
      return outcome.code
    case 'signaled':
      return signalExitCode(outcome.signal)
    case 'timed-out':
      return exitCodes.timedOut
    case 'out-of-memory':
    case 'output-limit':
    case 'killed':
      return exitCodes.killed
  }
}
