/**
 * The connections that a sandbox may have at once. Whoever finds no place waits its turn, within bounds: clients open more at once than they need, and
 * would take a refusal for the answer of the other side. Connections that only wait to be used again make room first.
 */
import { EgressError } from './egress-error.js'

export interface Place {
  /** Idempotent. */
  free(): void
}

interface Waiter {
  admit(place: Place): void
}

export interface PlacesOrder {
  readonly most: number
  readonly mostWaiting: number
  readonly waitMs: number
  /** Ends a connection that nobody uses at the moment; false when there is none. */
  readonly makeRoom: () => boolean
}

export class Places {
  readonly #order: PlacesOrder
  readonly #waiters: Waiter[] = []
  #most: number
  #taken = 0

  constructor(order: PlacesOrder) {
    this.#order = order
    this.#most = order.most
  }

  /** Those that are taken beyond a lower number stay until they are free. */
  set most(most: number) {
    this.#most = most
    this.#admitNext()
  }

  get hasWaiting(): boolean {
    return this.#waiters.length > 0
  }

  /** Throws EgressError('busy') when too many wait or nothing becomes free in time, and the signal's reason. */
  async take(signal: AbortSignal): Promise<Place> {
    signal.throwIfAborted()
    if (this.#taken < this.#most && this.#waiters.length === 0) return this.#place()
    const { mostWaiting, waitMs, makeRoom } = this.#order
    if (this.#waiters.length >= mostWaiting) throw this.#busy(`and ${mostWaiting} more wait already`)
    const admitted = this.#wait(signal, waitMs)
    if (makeRoom()) this.#admitNext()
    return await admitted
  }

  #wait(signal: AbortSignal, waitMs: number): Promise<Place> {
    return new Promise((resolve, reject) => {
      const end = (act: () => void): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', abort)
        const at = this.#waiters.indexOf(waiter)
        if (at !== -1) this.#waiters.splice(at, 1)
        act()
      }
      const waiter: Waiter = { admit: (place) => end(() => resolve(place)) }
      const abort = (): void => end(() => reject(signal.reason as Error))
      const timer = setTimeout(() => end(() => reject(this.#busy(`and none became free within ${waitMs} ms`))), waitMs).unref()
      signal.addEventListener('abort', abort, { once: true })
      this.#waiters.push(waiter)
    })
  }

  #busy(more: string): EgressError {
    return new EgressError('busy', `all ${this.#most} connections of this sandbox are in use, ${more}`)
  }

  #place(): Place {
    this.#taken++
    let isFree = false
    return {
      free: () => {
        if (isFree) return
        isFree = true
        this.#taken--
        this.#admitNext()
      },
    }
  }

  #admitNext(): void {
    while (this.#taken < this.#most) {
      const [next] = this.#waiters
      if (next === undefined) return
      next.admit(this.#place())
    }
  }
}
