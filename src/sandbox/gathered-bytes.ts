const leastCapacity = 4096

/** Bytes put together in one place that grows, so that a million tiny pieces cost no more than one large one. */
export class GatheredBytes {
  #room = new Uint8Array(0)
  #length = 0

  append(piece: Uint8Array): void {
    const length = this.#length + piece.length
    if (length > this.#room.length) {
      const room = new Uint8Array(Math.max(length, this.#room.length * 2, leastCapacity))
      room.set(this.#room.subarray(0, this.#length))
      this.#room = room
    }
    this.#room.set(piece, this.#length)
    this.#length = length
  }

  /** All of it, in memory that holds nothing else. */
  toBytes(): Uint8Array {
    return this.#room.slice(0, this.#length)
  }
}
