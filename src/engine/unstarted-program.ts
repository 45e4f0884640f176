import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'
import type { Ending, LimitHits, OutputEvent, Outcome } from '../contract/run.js'
import { nothingUsed, toMicroseconds } from './usage.js'

export interface Unstarted {
  readonly outcome: Outcome
  readonly wallMs: number
  /** Met on its way; unknown when not given. */
  readonly hits?: LimitHits
}

/** A program that did not start: it printed nothing, reads nothing and has ended. */
export class UnstartedProgram implements PlatformProcess {
  readonly pid = 0
  readonly ended: Promise<Ending>
  readonly output: AsyncIterable<OutputEvent> = { [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }) }

  constructor({ outcome, wallMs, hits = nothingUsed.hits }: Unstarted) {
    const usage = toMicroseconds({ ...nothingUsed, wallMs, hits })
    this.ended = Promise.resolve({ outcome, usage, truncated: false })
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- what is wrong rejects
  async write(): Promise<void> {
    throw inputOver()
  }
  async endInput(): Promise<void> {}
  async signal(): Promise<void> {}
  async resize(): Promise<void> {}
  async kill(): Promise<void> {}
  ref(): void {}
  unref(): void {}
}

/** As the kernel tells by EPIPE. */
export function inputOver(): SandboxError {
  return new SandboxError('conflict', 'stdin: the program has ended')
}
