import type { WardenExit } from '../channel/index.js'
import type { Outcome } from '../contract/run.js'
import { killSignal, processorTimeSignal, signalName } from './signals.js'

/** Why the engine ended a run; the first reason stands. */
export type Stop = Extract<Outcome, { readonly kind: 'timed-out' | 'output-limit' | 'killed' }>

export interface Ended {
  readonly exit: WardenExit
  readonly stop: Stop | undefined
  /** How many processes of this run the kernel killed for want of memory; undefined where nobody counts them. */
  readonly memoryKills: number | undefined
  readonly memoryBytes: number
  /** The run used all its processor time, whatever ended it; undefined when it has a limit it did not reach, or none. */
  readonly processorLimitMs?: number | undefined
}

/**
 * How a program ended. A program that was stopped but had ended by itself before the kill reached it ended by itself; only what went
 * beyond the output limit did so for certain. An ending nobody saw is never a success.
 */
export function outcomeOf({ exit, stop, memoryKills, memoryBytes, processorLimitMs }: Ended): Outcome {
  if (stop?.kind === 'output-limit') return stop
  switch (exit.kind) {
    case 'exited':
      return { kind: 'exited', code: exit.code }
    case 'lost':
      return stop ?? { kind: 'killed', reason: 'nobody saw how the program ended: the process that watched it was killed' }
    case 'signaled':
      // The kernel's own limit on a process comes second to the engine's watch over the run, and tells with these two signals.
      if (processorLimitMs !== undefined && !stop && (exit.code === killSignal || exit.code === processorTimeSignal))
        return { kind: 'timed-out', by: 'cpu', limitMs: processorLimitMs }
      if (exit.code !== killSignal) return { kind: 'signaled', signal: signalName(exit.code) }
      if (stop) return stop
      return memoryKills !== undefined && memoryKills > 0 ? { kind: 'out-of-memory', limitBytes: memoryBytes } : { kind: 'signaled', signal: 'SIGKILL' }
  }
}
