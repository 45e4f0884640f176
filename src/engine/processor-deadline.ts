/** Sleeping less than this would cost more processor time than it could save. */
const leastSleepMs = 5

export interface ProcessorDeadlineOptions {
  readonly limitMs: number
  /** How many processors can be used at once: the time that is left cannot be used up faster. */
  readonly processors: number
  /** What was used so far; undefined when it cannot be told any more. */
  readonly usedMs: () => number | undefined
  /** Called once, when all is used. */
  readonly onReached: () => void
}

/** Calls back once a run has used its processor time. Looks only when that could have come about, and never keeps the process alive. */
export class ProcessorDeadline {
  readonly #options: ProcessorDeadlineOptions
  #timer: NodeJS.Timeout | undefined
  #isOver = false

  constructor(options: ProcessorDeadlineOptions) {
    this.#options = options
    this.#sleep(options.limitMs)
  }

  cancel(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }

  #sleep(leftMs: number): void {
    const { processors } = this.#options
    this.#timer = setTimeout(() => this.#look(), Math.min(Math.max(leftMs / processors, leastSleepMs), 2 ** 31 - 1))
    this.#timer.unref()
  }

  #look(): void {
    if (this.#isOver) return
    const { limitMs, usedMs, onReached } = this.#options
    const used = usedMs()
    if (used === undefined) return
    if (used < limitMs) this.#sleep(limitMs - used)
    else onReached()
  }
}
