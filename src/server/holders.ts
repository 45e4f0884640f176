import { setTimeout as sleep } from 'node:timers/promises'

/** So long a sandbox waits for the stream that is to hold it. */
const patienceMs = 10_000

/** Sandboxes that are to end with a connection: one that nobody comes to hold is closed, too. */
export class Holders {
  readonly #waiting = new Map<string, AbortController>()

  /** Of one that was just made. */
  expect(id: string, close: () => Promise<void>): void {
    const waiting = new AbortController()
    this.#waiting.set(id, waiting)
    sleep(patienceMs, undefined, { signal: waiting.signal, ref: false })
      .then(close)
      // It is held, or over already.
      .catch(() => undefined)
      .finally(() => this.#waiting.delete(id))
  }

  /** Somebody holds it now. */
  came(id: string): void {
    this.#waiting.get(id)?.abort()
  }
}
