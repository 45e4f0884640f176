import type { ListenOptions, PlatformEvent, PlatformEventFacts } from '../contract/events.js'
import type { EventWindow } from './event-window.js'

export interface ReaderOrder {
  readonly window: EventWindow
  /** The first that it reads. */
  readonly from: number
  /** Whether it asked for what was before that and is not known. */
  readonly hasLost: boolean
  readonly options: Omit<ListenOptions, 'after'>
  readonly cursorOf: (number: number) => string
  onLeft(reader: EventReader): void
}

/** One who listens: a place in a window of events, and nothing of its own that could grow. */
export class EventReader implements AsyncIterableIterator<PlatformEvent> {
  readonly #order: ReaderOrder
  readonly #types: ReadonlySet<string> | undefined
  readonly #onAbort = (): void => this.#finish()
  #place: number
  #hasLost: boolean
  #isOver = false
  #wake: (() => void) | undefined

  constructor(order: ReaderOrder) {
    const { types, signal } = order.options
    this.#order = order
    this.#types = types && new Set(types)
    this.#place = order.from
    this.#hasLost = order.hasLost
    signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  /** One was told. What is not for a reader that has read everything is none that it could miss. */
  notice(event: PlatformEventFacts): void {
    const wake = this.#wake
    if (!wake) return
    if (!this.#isFor(event)) {
      this.#place = this.#order.window.next
      return
    }
    // From now on it has something to read.
    this.#wake = undefined
    wake()
  }

  /** None will be told any more; those that were are still read. */
  end(): void {
    this.#isOver = true
    this.#order.options.signal?.removeEventListener('abort', this.#onAbort)
    this.#wake?.()
  }

  async next(): Promise<IteratorResult<PlatformEvent, undefined>> {
    for (;;) {
      this.#order.options.signal?.throwIfAborted()
      const value = this.#missed() ?? this.#read()
      if (value) return { done: false, value }
      if (this.#isOver) return { done: true, value: undefined }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  return(): Promise<IteratorResult<PlatformEvent, undefined>> {
    this.#place = this.#order.window.next
    this.#hasLost = false
    this.#finish()
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #missed(): PlatformEvent | undefined {
    const { window, cursorOf } = this.#order
    const count = window.first - this.#place
    if (count <= 0 && !this.#hasLost) return undefined
    this.#place = Math.max(this.#place, window.first)
    const known = this.#hasLost ? {} : { count }
    const reason = this.#hasLost ? 'what was asked for is not kept here' : `${count} events were missed: no more than the latest are kept for a reader`
    this.#hasLost = false
    return { type: 'missed', ...known, reason, at: new Date().toISOString(), cursor: cursorOf(this.#place - 1) }
  }

  #read(): PlatformEvent | undefined {
    const { window, cursorOf } = this.#order
    for (let event = window.at(this.#place); event; event = window.at(this.#place)) {
      this.#place += 1
      if (this.#isFor(event)) return { ...event, cursor: cursorOf(this.#place - 1) }
    }
    return undefined
  }

  #isFor(event: PlatformEventFacts): boolean {
    const { sandbox, agent } = this.#order.options
    if (this.#types && !this.#types.has(event.type)) return false
    if (sandbox !== undefined && !('sandbox' in event && event.sandbox === sandbox)) return false
    return agent === undefined || ('agent' in event && event.agent === agent)
  }

  #finish(): void {
    this.#order.onLeft(this)
    this.end()
  }
}
