/** Whether a sandbox is of use to anyone: asked of it, something in progress, or work that its programs do by themselves. */

/** What was asked of a sandbox last, and what is in progress. */
export class Activity {
  #lastAt = performance.now()
  #held = 0

  get lastAt(): number {
    return this.#held > 0 ? performance.now() : this.#lastAt
  }

  /** Someone did something: a call, a keystroke, bytes that were read or carried. */
  touch(): void {
    this.#lastAt = performance.now()
  }

  /** Something is in progress until what this returns is called; once. */
  hold(): () => void {
    this.#held += 1
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#held -= 1
      this.touch()
    }
  }
}

export interface IdleWatchOptions {
  readonly idleMs: number
  readonly activity: Activity
  /** Processor time that its programs have used so far; undefined when nobody can tell. */
  readonly worked: () => number | undefined
  /** Called once. */
  onIdle(): void
}

/** So often within the idle time it is looked whether programs work, but never more often than this, nor more seldom than that. */
const looks = 4
const shortestLookMs = 25
const longestLookMs = 15_000
/** Less is what a program uses that waits: a timer now and then, a garbage collection. */
const leastShare = 0.01
/** /proc counts in steps of this. */
const leastWorkMs = 10

/** Calls back when nothing was asked of a sandbox and its programs did no work for a time. Never keeps the process alive. */
export class IdleWatch {
  readonly #options: IdleWatchOptions
  #timer: NodeJS.Timeout | undefined
  #worked: number | undefined
  #lookedAt = performance.now()

  constructor(options: IdleWatchOptions) {
    this.#options = options
    this.goOn()
  }

  /** From now on, as if something had just happened. */
  goOn(): void {
    this.hold()
    this.#options.activity.touch()
    this.#worked = this.#options.worked()
    this.#lookedAt = performance.now()
    this.#sleep()
  }

  hold(): void {
    clearTimeout(this.#timer)
  }

  #sleep(): void {
    const { idleMs, activity } = this.#options
    const restMs = activity.lastAt + idleMs - performance.now()
    const lookMs = Math.min(Math.max(idleMs / looks, shortestLookMs), longestLookMs)
    this.#timer = setTimeout(() => this.#look(), Math.max(1, Math.min(restMs, lookMs)))
    this.#timer.unref()
  }

  #look(): void {
    const { idleMs, activity } = this.#options
    if (this.#hasWorked()) activity.touch()
    if (performance.now() - activity.lastAt >= idleMs) this.#options.onIdle()
    else this.#sleep()
  }

  #hasWorked(): boolean {
    const worked = this.#options.worked()
    const now = performance.now()
    const used = worked === undefined || this.#worked === undefined ? 0 : worked - this.#worked
    const isWork = used >= Math.max(leastWorkMs, (now - this.#lookedAt) * leastShare)
    // Less than a step is kept, so that it counts once it is one.
    if (isWork || used < 0 || now - this.#lookedAt >= longestLookMs) {
      this.#worked = worked
      this.#lookedAt = now
    }
    return isWork
  }
}
