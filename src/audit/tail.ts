import type { AuditFilter, AuditRecord } from '../contract/audit.js'
import { parseRecord } from './chain.js'
import type { AuditStore } from './store.js'

/** How long what another process wrote may wait to be seen here. */
const lookEveryMs = 250
const rowsAtOnce = 200

/** Those who follow a chain. */
export class Tails {
  readonly #store: AuditStore
  readonly #wakers = new Set<() => void>()
  #isClosed = false

  constructor(store: AuditStore) {
    this.#store = store
  }

  /** Something was written here. */
  wake(): void {
    for (const waker of this.#wakers) waker()
  }

  close(): void {
    this.#isClosed = true
    this.wake()
  }

  follow(filter: AuditFilter, { signal, last = 0 }: { readonly signal?: AbortSignal; readonly last?: number }): AsyncIterable<AuditRecord> {
    // From now on, whenever it is first read.
    const latest = last > 0 ? this.#store.find({ filter, order: 'newest', after: undefined, limit: Math.min(last, 1000) }).toReversed() : []
    const end = this.#store.end().newest?.number ?? 0
    const follow = (after: number) => this.#after(after, { filter, signal })
    return {
      async *[Symbol.asyncIterator]() {
        for (const { text, number } of latest) if (number <= end) yield* recordIn(text)
        yield* follow(end)
      },
    }
  }

  async *#after(number: number, { filter, signal }: { readonly filter: AuditFilter; readonly signal: AbortSignal | undefined }): AsyncGenerator<AuditRecord> {
    for (let after = number; !this.#isClosed; ) {
      signal?.throwIfAborted()
      const rows = this.#store.find({ filter, order: 'oldest', after, limit: rowsAtOnce })
      for (const { text } of rows) yield* recordIn(text)
      after = rows.at(-1)?.number ?? after
      if (rows.length === 0) await this.#next(signal)
    }
  }

  #next(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        this.#wakers.delete(done)
        resolve()
      }
      const timer = setTimeout(done, lookEveryMs)
      signal?.addEventListener('abort', done, { once: true })
      this.#wakers.add(done)
    })
  }
}

/** What cannot be read is for whoever verifies. */
function* recordIn(text: string): Generator<AuditRecord> {
  const record = parseRecord(text)
  if (record) yield record
}
