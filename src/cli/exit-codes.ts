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
  const number = (constants.signals as Readonly<Record<string, number>>)[signal]
  if (number !== undefined) return 128 + number
  const realTime = /^(?:SIGRTMIN\+)?(\d+)$/.exec(signal)
  return realTime ? 128 + Number(realTime[1]) + (signal.startsWith('SIGRTMIN') ? 34 : 0) : exitCodes.killed
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
