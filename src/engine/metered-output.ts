import { SandboxError } from '../contract/errors.js'
import type { OutputEvent } from '../contract/run.js'

export interface MeteredOutputOptions {
  readonly source: AsyncIterable<OutputEvent, unknown>
  /** Undefined: everything is handed on. */
  readonly limitBytes: number | undefined
  /** Called once, when the program printed more than the limit. */
  onExceeded(): void
  /** What to throw when the source fails. */
  failure(cause: unknown): Promise<unknown>
}

interface Cut {
  readonly reason: unknown
  /** Awaited before the reason is thrown. */
  readonly after: Promise<unknown>
}

const done = { done: true, value: undefined } as const

/** What a program prints, counted, and cut off after exactly `limitBytes`. What comes later is read and dropped, so that it does not hold the program. */
export class MeteredOutput implements AsyncIterableIterator<OutputEvent, undefined> {
  readonly #source: AsyncIterator<OutputEvent, unknown>
  readonly #options: MeteredOutputOptions
  #isClaimed = false
  #isLeft = false
  #cut: Cut | undefined
  #printedBytes = 0
  #reading: Promise<unknown> = Promise.resolve()

  constructor(options: MeteredOutputOptions) {
    this.#options = options
    this.#source = options.source[Symbol.asyncIterator]()
  }

  /** stdout and stderr together, kept or not. */
  get printedBytes(): number {
    return this.#printedBytes
  }

  get isTruncated(): boolean {
    return this.#printedBytes > (this.#options.limitBytes ?? Number.POSITIVE_INFINITY)
  }

  /** Settles when what was read so far is counted. */
  get idle(): Promise<unknown> {
    return this.#reading
  }

  /** From now on iteration ends by throwing the reason. */
  cut(cut: Cut): void {
    this.#cut ??= cut
  }

  [Symbol.asyncIterator](): this {
    if (this.#isClaimed) throw new SandboxError('conflict', 'the output of a run has one consumer, and it has one already')
    this.#isClaimed = true
    return this
  }

  async next(): Promise<IteratorResult<OutputEvent, undefined>> {
    if (this.#isLeft) return done
    const event = await this.#read().catch(async (error: unknown) => {
      throw this.#cut ? await reasonOf(this.#cut) : await this.#options.failure(error)
    })
    if (event) return { done: false, value: event }
    if (this.#cut) throw await reasonOf(this.#cut)
    return done
  }

  /** A consumer that leaves early lets the program go on: the rest is counted and dropped. */
  return(): Promise<IteratorResult<OutputEvent, undefined>> {
    if (!this.#isLeft) {
      this.#isLeft = true
      void this.#drain()
    }
    return Promise.resolve(done)
  }

  async #drain(): Promise<void> {
    try {
      while (await this.#read());
    } catch {
      // Whoever waits for the run's end is told.
    }
  }

  #read(): Promise<OutputEvent | undefined> {
    const reading = this.#readKept()
    this.#reading = reading.catch(() => undefined)
    return reading
  }

  async #readKept(): Promise<OutputEvent | undefined> {
    for (;;) {
      const result = await this.#source.next()
      if (result.done) return undefined
      const kept = this.#count(result.value)
      if (kept) return kept
    }
  }

  #count({ type, bytes }: OutputEvent): OutputEvent | undefined {
    const room = (this.#options.limitBytes ?? Number.POSITIVE_INFINITY) - this.#printedBytes
    this.#printedBytes += bytes.length
    if (bytes.length <= room) return { type, bytes }
    if (room >= 0) this.#options.onExceeded()
    return room > 0 ? { type, bytes: bytes.subarray(0, room) } : undefined
  }
}

async function reasonOf({ reason, after }: Cut): Promise<unknown> {
  await after
  return reason
}
