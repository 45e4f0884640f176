import type { PlatformProcess } from '../contract/platform.js'
import { exitCodeOf } from './exit-codes.js'
import { forwardInput } from './input.js'
import type { OwnTerminal } from './own-terminal.js'
import { say } from './print.js'
import { type Cursor, startLine, streamOutput } from './streams.js'
import { explainOutcome } from './words.js'

interface Seat {
  readonly terminal: OwnTerminal
  readonly name: string
}

/** A program at our own terminal, until it ends. Resolves to its exit code. */
export async function sit(program: PlatformProcess, { terminal, name }: Seat): Promise<number> {
  const cursor: Cursor = { isMidLine: false }
  if (program.pid !== 0) terminal.hand((size) => void program.resize(size).catch(() => undefined))
  // A terminal that is gone tells by a signal; what was typed for a program that is over is nobody's.
  forwardInput({ chunks: process.stdin, close: () => undefined }, program).catch(() => undefined)
  const [{ outcome }] = await Promise.all([program.ended, streamOutput(program, cursor)])
  terminal.takeBack({ isOrderly: outcome.kind === 'exited' })
  const explanation = explainOutcome(outcome, name)
  if (explanation !== undefined) {
    startLine(cursor)
    say(explanation)
  }
  return exitCodeOf(outcome)
}
