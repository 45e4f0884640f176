/** How much of each stream a process keeps for a reader that is not there, or slow. */
const tailBytes = 2 ** 20
const mostPerRead = 64 * 1024
const leastCapacity = 4096

/**
 * The end of one output stream: a ring that never holds the program back. When it is full the oldest bytes are dropped, and counted.
 * A reader that keeps up misses nothing; one that needs every byte however slow it is iterates a run instead.
 */
export class OutputTail {
  readonly #capacity: number
  #ring = new Uint8Array(0)
  #start = 0
  #length = 0
  #droppedBytes = 0
  #isEnded = false
  #isUnwanted = false
  #failure: { readonly reason: unknown } | undefined
  #wake: (() => void) | undefined

  constructor(capacity = tailBytes) {
    this.#capacity = capacity
  }

  get droppedBytes(): number {
    return this.#droppedBytes
  }

  push(bytes: Uint8Array): void {
    if (this.#isUnwanted || bytes.length === 0) return
    const kept = bytes.length > this.#capacity ? bytes.subarray(bytes.length - this.#capacity) : bytes
    const excess = Math.max(0, this.#length + kept.length - this.#capacity)
    this.#droppedBytes += bytes.length - kept.length + excess
    this.#skip(excess)
    this.#grow(this.#length + kept.length)
    const end = (this.#start + this.#length) % this.#ring.length
    const first = kept.subarray(0, this.#ring.length - end)
    this.#ring.set(first, end)
    this.#ring.set(kept.subarray(first.length), 0)
    this.#length += kept.length
    this.#wake?.()
  }

  end(): void {
    this.#isEnded = true
    this.#wake?.()
  }

  fail(reason: unknown): void {
    this.#failure = { reason }
    this.#wake?.()
  }

  /** Nobody will read: what is here and what comes is let go. */
  leave(): void {
    this.#isUnwanted = true
    this.#length = 0
    this.#ring = new Uint8Array(0)
    this.#wake?.()
  }

  /** The next bytes; undefined at the end. One reader at a time. */
  async read(): Promise<Uint8Array | undefined> {
    while (this.#length === 0) {
      if (this.#isEnded || this.#isUnwanted) return undefined
      if (this.#failure) throw this.#failure.reason
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = undefined
    }
    const size = Math.min(this.#length, this.#ring.length - this.#start, mostPerRead)
    const bytes = this.#ring.slice(this.#start, this.#start + size)
    this.#skip(size)
    return bytes
  }

  #skip(count: number): void {
    this.#length -= count
    this.#start = this.#length === 0 ? 0 : (this.#start + count) % this.#ring.length
  }

  #grow(length: number): void {
    if (length <= this.#ring.length) return
    const ring = new Uint8Array(Math.min(this.#capacity, Math.max(length, this.#ring.length * 2, leastCapacity)))
    const first = this.#ring.subarray(this.#start, Math.min(this.#start + this.#length, this.#ring.length))
    ring.set(first, 0)
    ring.set(this.#ring.subarray(0, this.#length - first.length), first.length)
    this.#ring = ring
    this.#start = 0
  }
}
