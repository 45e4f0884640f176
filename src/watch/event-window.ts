import type { PlatformEvent, PlatformEventFacts } from '../contract/events.js'

export type KeptEvent = PlatformEventFacts & Pick<PlatformEvent, 'at'>

/** The latest events, numbered from 0 on in the order in which they were told. */
export class EventWindow {
  readonly #most: number
  readonly #kept: KeptEvent[] = []
  #next = 0

  constructor(most: number) {
    this.#most = most
  }

  /** The number of the one that is told next. */
  get next(): number {
    return this.#next
  }

  /** The number of the oldest that is kept. */
  get first(): number {
    return this.#next - this.#kept.length
  }

  add(event: KeptEvent): void {
    // Once it is full, each takes the place of the one that was told so many before it.
    this.#kept[this.#next % this.#most] = event
    this.#next += 1
  }

  /** Undefined for one that is not kept. */
  at(number: number): KeptEvent | undefined {
    return number >= this.first && number < this.#next ? this.#kept[number % this.#most] : undefined
  }
}
