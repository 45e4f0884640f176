/** Limits on bytes as they pass: so many a second, and so many altogether. */
import type { Clock } from './clock.js'

/** Shorter waits than this are not worth a timer: they add up to one that is. */
const leastWaitMs = 2

/**
 * A token bucket that may go into debt: whoever takes waits until its own part is paid off, so those who share one wait in the order in which they took.
 */
export class Bucket {
  readonly #perMs: number
  readonly #burst: number
  readonly #clock: Clock
  #tokens: number
  #since: number

  constructor(bytesPerSecond: number, clock: Clock) {
    this.#perMs = bytesPerSecond / 1000
    this.#burst = bytesPerSecond / 10
    this.#clock = clock
    this.#tokens = this.#burst
    this.#since = clock.now()
  }

  /** The most that should be taken at once, so that a slow bucket gives often and little. */
  get portion(): number {
    return Math.max(512, Math.floor(this.#burst))
  }

  /** How long to wait before passing on what was taken. */
  take(bytes: number): number {
    const now = this.#clock.now()
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#since) * this.#perMs) - bytes
    this.#since = now
    const waitMs = -this.#tokens / this.#perMs
    return waitMs < leastWaitMs ? 0 : waitMs
  }
}

/** A number of bytes that only becomes less. */
export class Budget {
  #left: number

  constructor(readonly limitBytes: number) {
    this.#left = limitBytes
  }

  get isSpent(): boolean {
    return this.#left <= 0
  }

  /** Never less than nothing, also where a limit was lowered below what was used. */
  get leftBytes(): number {
    return Math.max(0, this.#left)
  }

  take(bytes: number): void {
    this.#left -= bytes
  }
}

/** What holds for the bytes of one connection: its own limits and those of its sandbox. */
export interface Meter {
  readonly up: () => readonly Bucket[]
  readonly down: () => readonly Bucket[]
  readonly budgets: () => readonly { readonly budget: Pick<Budget, 'leftBytes' | 'take'>; readonly words: string }[]
}
