import type { NetworkRecord } from '../contract/network.js'

const mostWaiting = 256

/** Records for one reader, who may be slow, or not there at all: then the oldest are dropped, and counted. */
export class RecordCopy implements AsyncIterable<NetworkRecord> {
  readonly #waiting: NetworkRecord[] = []
  #missed = 0
  #isOver = false
  #asked: (() => void) | undefined

  take(record: NetworkRecord): void {
    if (this.#waiting.length >= mostWaiting) {
      this.#waiting.shift()
      this.#missed += 1
    }
    this.#waiting.push(record)
    this.#asked?.()
  }

  end(): void {
    this.#isOver = true
    this.#asked?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<NetworkRecord> {
    for (;;) {
      const record = this.#waiting.shift()
      if (record) {
        const missed = this.#missed + (record.missed ?? 0)
        this.#missed = 0
        yield missed > 0 ? { ...record, missed } : record
      } else if (this.#isOver) return
      else
        await new Promise<void>((resolve) => {
          this.#asked = resolve
        })
    }
  }
}
