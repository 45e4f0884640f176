/** What comes from a sandbox, which holds something open there until it is read or left. */
export class Incoming implements AsyncIterable<Uint8Array>, AsyncDisposable {
  readonly #content: AsyncIterable<Uint8Array>
  #isBegun = false

  constructor(content: AsyncIterable<Uint8Array>) {
    this.#content = content
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    this.#isBegun = true
    return this.#content[Symbol.asyncIterator]()
  }

  /** A generator that was never begun has nothing to clear up: so it is begun before it is left. Whoever began it has left it, too. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isBegun) return
    const iterator = this[Symbol.asyncIterator]()
    await iterator.next().catch(() => undefined)
    await iterator.return?.().catch(() => undefined)
  }
}
