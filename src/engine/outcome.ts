import type { WardenExit } from '../channel/index.js'
import type { Outcome } from '../contract/run.js'
import { killSignal, signalName } from './signals.js'

/** Why the engine ended a run; the first reason stands. */
export type Stop = Extract<Outcome, { readonly kind: 'timed-out' | 'output-limit' | 'killed' }>

export interface Ended {
  readonly exit: WardenExit
  readonly stop: Stop | undefined
  /** The kernel killed something in this cell for want of memory while the run lasted. */
  readonly ranOutOfMemory: boolean
  readonly memoryBytes: number
}

/**
 * How a program ended. A program that was stopped but had ended by itself before the kill reached it ended by itself; only what went
 * beyond the output limit did so for certain. An ending nobody saw is never a success.
 */
export function outcomeOf({ exit, stop, ranOutOfMemory, memoryBytes }: Ended): Outcome {
  if (stop?.kind === 'output-limit') return stop
  switch (exit.kind) {
    case 'exited':
      return { kind: 'exited', code: exit.code }
    case 'lost':
      return stop ?? { kind: 'killed', reason: 'nobody saw how the program ended: the process that watched it was killed' }
    case 'signaled':
      if (exit.code !== killSignal) return { kind: 'signaled', signal: signalName(exit.code) }
      if (stop) return stop
      return ranOutOfMemory ? { kind: 'out-of-memory', limitBytes: memoryBytes } : { kind: 'signaled', signal: 'SIGKILL' }
  }
}
