import { type Clock, Deadline } from './deadline.js'
import type { Stop } from './outcome.js'

export interface StartPatienceOptions {
  /** Wall time of the run, of which its start is a part; undefined when it has no limit. */
  readonly timeMs: number | undefined
  /** No start takes longer, whatever the run's time. */
  readonly answerMs: number
  readonly signal: AbortSignal | undefined
  readonly clock: Clock
  /** Until it is cancelled, the warden has a time to answer in. */
  watchAnswer(act: string): Deadline
}

/**
 * How long the start of a program is waited for. Another guest of the same id may stop it on its way, so a start that does not come about is no
 * fault of the warden's: the run is killed, and only a warden that does not answer that is broken.
 */
export class StartPatience {
  readonly #options: StartPatienceOptions
  readonly #controller = new AbortController()
  readonly #deadlines: readonly Deadline[]
  readonly #onAbort = (): void => this.#giveUp({ kind: 'killed', reason: 'aborted by its owner' })
  #watch: Deadline | undefined
  #stop: Stop | undefined

  constructor(options: StartPatienceOptions) {
    const { timeMs, answerMs, signal, clock } = options
    this.#options = options
    this.#deadlines = [
      ...(timeMs === undefined ? [] : [new Deadline(timeMs, () => this.#giveUp({ kind: 'timed-out', by: 'wall', limitMs: timeMs }), clock)]),
      new Deadline(answerMs, () => this.#giveUp({ kind: 'killed', reason: `it did not start within ${answerMs} ms` }), clock),
    ]
    signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (signal?.aborted) this.#onAbort()
  }

  /** Aborts when it is over. */
  get giveUp(): AbortSignal {
    return this.#controller.signal
  }

  /** Why it is over; undefined while it lasts. */
  get stop(): Stop | undefined {
    return this.#stop
  }

  /** The start has come about, or will not. */
  end(): void {
    for (const deadline of this.#deadlines) deadline.cancel()
    this.#watch?.cancel()
    this.#options.signal?.removeEventListener('abort', this.#onAbort)
  }

  #giveUp(stop: Stop): void {
    if (this.#stop) return
    this.#stop = stop
    this.#watch = this.#options.watchAnswer('start or kill a program')
    this.#controller.abort()
  }
}
