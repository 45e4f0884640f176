import { EgressError } from './egress-error.js'
import type { Entrance } from './gate-types.js'

interface EntrancesOrder {
  readonly waitMs: number
  readonly closing: AbortSignal
}

/** Beyond as many as there may be connections: bursts of clients that have just connected. */
const mostBeyond = 256

/**
 * Guests' connections that have not said what they want. They cost memory and nothing else, so a sandbox may have only so many, each only for so long; what
 * one of them fills is its own number and nobody else's.
 */
export class Entrances {
  readonly #order: EntrancesOrder
  #count = 0

  constructor(order: EntrancesOrder) {
    this.#order = order
  }

  enter({ most, waitMs = this.#order.waitMs }: { readonly most: number; readonly waitMs?: number | undefined }): Entrance | undefined {
    const { closing } = this.#order
    if (closing.aborted || this.#count >= most + mostBeyond) return undefined
    this.#count++
    const over = new AbortController()
    const timer = setTimeout(() => over.abort(new EgressError('timed-out', `nothing that could be understood came within ${waitMs} ms`)), waitMs).unref()
    const close = (): void => over.abort(closing.reason)
    closing.addEventListener('abort', close, { once: true })
    let isIn = true
    const leave = (): void => {
      if (!isIn) return
      isIn = false
      this.#count--
      clearTimeout(timer)
      closing.removeEventListener('abort', close)
    }
    return { signal: over.signal, leave }
  }
}
