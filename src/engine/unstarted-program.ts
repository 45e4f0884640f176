import type { PlatformProcess } from '../contract/platform.js'
import type { Ending, OutputEvent, Outcome } from '../contract/run.js'
import { nothingUsed, toMicroseconds } from './usage.js'

/** A program that did not start: it printed nothing, reads nothing and has ended. */
export class UnstartedProgram implements PlatformProcess {
  readonly pid = 0
  readonly ended: Promise<Ending>
  readonly output: AsyncIterable<OutputEvent> = { [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }) }

  constructor(outcome: Extract<Outcome, { kind: 'not-started' }>, wallMs: number) {
    const usage = toMicroseconds({ ...nothingUsed, wallMs })
    this.ended = Promise.resolve({ outcome, usage, truncated: false })
  }

  async write(): Promise<void> {}
  async endInput(): Promise<void> {}
  async signal(): Promise<void> {}
  async kill(): Promise<void> {}
}
