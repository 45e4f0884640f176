import { timerLength } from '../contract/timer-length.js'

/** What a deadline goes by. One that can stand still tells those that joined it when it stops and goes on. */
export interface Clock {
  now(): number
  readonly isStopped: boolean
  join(waiting: Waiting): void
  leave(waiting: Waiting): void
}

export interface Waiting {
  hold(): void
  goOn(): void
}

/** The monotonic clock, which never stops. */
const wallClock: Clock = { now: () => performance.now(), isStopped: false, join: () => undefined, leave: () => undefined }

/** Calls back once, after a time on its clock. Never keeps the process alive. */
export class Deadline implements Waiting {
  readonly #at: number
  readonly #onReached: () => void
  readonly #clock: Clock
  #timer: NodeJS.Timeout | undefined

  constructor(afterMs: number, onReached: () => void, clock: Clock = wallClock) {
    this.#clock = clock
    this.#at = clock.now() + afterMs
    this.#onReached = onReached
    clock.join(this)
    if (!clock.isStopped) this.goOn()
  }

  /** How long it still takes. */
  get restMs(): number {
    return this.#at - this.#clock.now()
  }

  cancel(): void {
    clearTimeout(this.#timer)
    this.#clock.leave(this)
  }

  hold(): void {
    clearTimeout(this.#timer)
  }

  goOn(): void {
    const { restMs } = this
    const lengthMs = timerLength(restMs)
    this.#timer = setTimeout(() => (restMs > lengthMs ? this.goOn() : this.#reach()), lengthMs)
    this.#timer.unref()
  }

  #reach(): void {
    this.#clock.leave(this)
    this.#onReached()
  }
}
