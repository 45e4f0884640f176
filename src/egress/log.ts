/** What is written down, for any number of readers. Each has room for so many; one that is too slow loses the oldest, and is told how many. */
import type { NetworkRecord } from '../contract/network.js'

const mostWaiting = 1024

interface Reader {
  readonly waiting: NetworkRecord[]
  missed: number
  wake: () => void
}

export class NetworkLog {
  readonly #readers = new Set<Reader>()
  readonly #most: number
  #isClosed = false

  constructor(most = mostWaiting) {
    this.#most = most
  }

  append(record: NetworkRecord): void {
    for (const reader of this.#readers) {
      reader.waiting.push(record)
      if (reader.waiting.length > this.#most) {
        reader.waiting.shift()
        reader.missed++
      }
      reader.wake()
    }
  }

  /** From this call on, whenever reading begins; until the log is closed or the signal aborts. */
  read(signal?: AbortSignal): AsyncIterable<NetworkRecord> {
    const reader: Reader = { waiting: [], missed: 0, wake: () => undefined }
    if (!this.#isClosed) this.#readers.add(reader)
    const leave = (): void => {
      this.#readers.delete(reader)
      reader.wake()
    }
    signal?.addEventListener('abort', leave, { once: true })
    if (signal?.aborted === true) leave()
    return this.#records(reader, () => {
      signal?.removeEventListener('abort', leave)
      leave()
    })
  }

  async *#records(reader: Reader, leave: () => void): AsyncGenerator<NetworkRecord> {
    try {
      for (;;) {
        const record = reader.waiting.shift()
        if (record !== undefined) {
          const { missed } = reader
          reader.missed = 0
          yield missed === 0 ? record : { ...record, missed }
        } else if (!this.#readers.has(reader)) return
        else
          await new Promise<void>((resolve) => {
            reader.wake = resolve
          })
      }
    } finally {
      leave()
    }
  }

  /** Readers get what waits for them, and then end. */
  close(): void {
    this.#isClosed = true
    const readers = [...this.#readers]
    this.#readers.clear()
    for (const reader of readers) reader.wake()
  }
}
