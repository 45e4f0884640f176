/**
 * What the person at the keyboard, or the machine, asks for while a sandbox is in use.
 *
 * While no program runs, Ctrl-C, SIGTERM, SIGHUP and SIGQUIT abort `signal`. While one does, the first Ctrl-C is the program's to answer and the
 * second kills it; the other three still abort, whereupon the sandbox is closed. A further signal after an abort ends us at once:
 * the cell notices that its channel ended and goes too.
 */

import { signalExitCode } from './exit-codes.js'
import { prepareLeaving } from './leaving.js'

/** Thrown through everything that was under way; ends as a quiet exit with the signal's code. */
export class Stopped extends Error {
  readonly signal: string

  constructor(signal: string) {
    super(`stopped by ${signal}`)
    this.signal = signal
  }
}

interface Interruptible {
  interrupt(): void
  kill(): void
}

export interface Interrupts {
  readonly signal: AbortSignal
  /** From now on Ctrl-C is for this program, whatever was pressed before, until it is disposed of. */
  attach(program: Interruptible): Disposable
  [Symbol.dispose](): void
}

const stopping = ['SIGTERM', 'SIGHUP', 'SIGQUIT'] as const

export function watchInterrupts(): Interrupts {
  const controller = new AbortController()
  let program: Interruptible | undefined
  let presses = 0
  const leaving = prepareLeaving()

  const abort = (name: string): void => {
    if (controller.signal.aborted) leaving.exit(signalExitCode(name))
    controller.abort(new Stopped(name))
  }
  const onInterrupt = (): void => {
    presses += 1
    if (program === undefined || controller.signal.aborted) abort('SIGINT')
    else if (presses === 1) program.interrupt()
    else if (presses === 2) program.kill()
    else abort('SIGINT')
  }
  const onStop = (name: NodeJS.Signals): void => abort(name)

  process.on('SIGINT', onInterrupt)
  for (const name of stopping) process.on(name, onStop)
  return {
    signal: controller.signal,
    attach(next) {
      program = next
      presses = 0
      return {
        [Symbol.dispose]() {
          if (program === next) program = undefined
        },
      }
    },
    [Symbol.dispose]() {
      process.off('SIGINT', onInterrupt)
      for (const name of stopping) process.off(name, onStop)
    },
  }
}

/** Rejects with the reason when the signal aborts; never resolves. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
