import type { SandboxEvent } from '../contract/lifetimes.js'

/** What one reader may be behind. */
const mostWaiting = 256

export type EventFacts = SandboxEvent extends infer Event ? (Event extends SandboxEvent ? Omit<Event, 'at'> : never) : never

/** What happened to one sandbox, told to all who listen from then on. */
export class SandboxEvents {
  readonly #readers = new Set<EventReader>()
  /** Told too, of a sandbox that is somebody's. */
  onTold: ((facts: EventFacts) => void) | undefined
  #isOver = false

  tell(facts: EventFacts): void {
    if (this.#isOver) return
    this.onTold?.(facts)
    const event = { at: new Date().toISOString(), ...facts } as SandboxEvent
    for (const reader of this.#readers) reader.take(event)
    if (event.type !== 'closed') return
    this.#isOver = true
    for (const reader of this.#readers) reader.end()
    this.#readers.clear()
  }

  /** From now on, whether or not it is being read; until it is left, aborted, or over. */
  listen(signal: AbortSignal | undefined): AsyncIterableIterator<SandboxEvent> {
    const reader = new EventReader((left) => this.#readers.delete(left), signal)
    if (this.#isOver) reader.end()
    else this.#readers.add(reader)
    return reader
  }
}

class EventReader implements AsyncIterableIterator<SandboxEvent> {
  readonly #waiting: SandboxEvent[] = []
  readonly #leave: (reader: EventReader) => void
  readonly #signal: AbortSignal | undefined
  readonly #onAbort = (): void => this.#finish()
  #missed = 0
  #isOver = false
  #asked: (() => void) | undefined

  constructor(leave: (reader: EventReader) => void, signal: AbortSignal | undefined) {
    this.#leave = leave
    this.#signal = signal
    signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  /** One that is too far behind misses the oldest, and is told so. */
  take(event: SandboxEvent): void {
    if (this.#waiting.length >= mostWaiting) {
      this.#waiting.shift()
      this.#missed += 1
    }
    this.#waiting.push(event)
    this.#asked?.()
  }

  end(): void {
    this.#isOver = true
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#asked?.()
  }

  async next(): Promise<IteratorResult<SandboxEvent, undefined>> {
    while (this.#waiting.length === 0 && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#asked = resolve
      })
      this.#asked = undefined
    }
    this.#signal?.throwIfAborted()
    if (this.#missed > 0) {
      const reason = `${this.#missed} events were missed: at most ${mostWaiting} wait for a reader`
      this.#missed = 0
      return { done: false, value: { type: 'missed', at: new Date().toISOString(), reason } }
    }
    const value = this.#waiting.shift()
    return value === undefined ? { done: true, value: undefined } : { done: false, value }
  }

  return(): Promise<IteratorResult<SandboxEvent, undefined>> {
    this.#waiting.length = 0
    this.#missed = 0
    this.#finish()
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #finish(): void {
    this.#leave(this)
    this.end()
  }
}
