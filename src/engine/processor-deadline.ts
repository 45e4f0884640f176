import { timerLength } from '../contract/timer-length.js'

/** Sleeping less than this would cost more processor time than it could save. */
const leastSleepMs = 5

export interface ProcessorDeadlineOptions {
  readonly limitMs: number
  /** How many processors can be used at once: the time that is left cannot be used up faster. */
  readonly processors: number
  /** What was used so far; undefined when it cannot be told any more. */
  readonly usedMs: () => number | undefined
  /** What was used when this is made; nothing when not given. */
  readonly alreadyMs?: number
  /** The shortest pause between two looks. */
  readonly pauseMs?: number
  /** Called once, when all is used. */
  readonly onReached: () => void
  /** Called once, when there is nothing more to look at. */
  readonly onOver?: () => void
}

/** Calls back once a run has used its processor time. Looks only when that could have come about, and never keeps the process alive. */
export class ProcessorDeadline {
  readonly #options: ProcessorDeadlineOptions
  #timer: NodeJS.Timeout | undefined
  #isOver = false

  constructor(options: ProcessorDeadlineOptions) {
    this.#options = options
    this.#sleep(options.limitMs - (options.alreadyMs ?? 0))
  }

  cancel(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }

  #sleep(leftMs: number): void {
    const { processors, pauseMs = leastSleepMs } = this.#options
    this.#timer = setTimeout(() => this.#look(), timerLength(Math.max(leftMs / processors, pauseMs)))
    this.#timer.unref()
  }

  #look(): void {
    if (this.#isOver) return
    const { limitMs, usedMs, onReached, onOver } = this.#options
    const used = usedMs()
    if (used !== undefined && used < limitMs) {
      this.#sleep(limitMs - used)
      return
    }
    onOver?.()
    if (used !== undefined) onReached()
  }
}
