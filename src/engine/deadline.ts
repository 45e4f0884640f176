/** Node's timers take no longer delay: a longer one would fire at once. */
const longestTimerMs = 2 ** 31 - 1

/** Calls back once, after a time on the monotonic clock. Never keeps the process alive. */
export class Deadline {
  readonly #at: number
  readonly #onReached: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(afterMs: number, onReached: () => void) {
    this.#at = performance.now() + afterMs
    this.#onReached = onReached
    this.#wait()
  }

  cancel(): void {
    clearTimeout(this.#timer)
  }

  #wait(): void {
    const restMs = this.#at - performance.now()
    this.#timer = setTimeout(() => (restMs > longestTimerMs ? this.#wait() : this.#onReached()), Math.min(restMs, longestTimerMs))
    this.#timer.unref()
  }
}
