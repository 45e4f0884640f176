/** Content that can be sent from its beginning once more while only its first piece was taken. */
export class Rewindable implements AsyncIterable<Uint8Array>, AsyncDisposable {
  readonly #source: AsyncIterator<Uint8Array>
  #first: Promise<IteratorResult<Uint8Array>> | undefined
  #isFurther = false
  #isOver = false

  constructor(content: AsyncIterable<Uint8Array>) {
    this.#source = content[Symbol.asyncIterator]()
  }

  get canRewind(): boolean {
    return !this.#isFurther
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined> {
    let taken = 0
    return {
      next: async () => {
        taken += 1
        const result = await (taken === 1 ? this.#takeFirst() : this.#takeNext())
        return result.done === true ? { done: true, value: undefined } : result
      },
    }
  }

  /** A source that is left early is told, without being waited for: it may hang. */
  [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isOver) this.#source.return?.().catch(() => undefined)
    return Promise.resolve()
  }

  #takeFirst(): Promise<IteratorResult<Uint8Array>> {
    this.#first ??= this.#take()
    return this.#first
  }

  async #takeNext(): Promise<IteratorResult<Uint8Array>> {
    if (this.#isOver) return { done: true, value: undefined }
    const result = await this.#take()
    if (result.done !== true) this.#isFurther = true
    return result
  }

  async #take(): Promise<IteratorResult<Uint8Array>> {
    try {
      const result = await this.#source.next()
      this.#isOver = result.done === true
      return result
    } catch (error) {
      this.#isOver = true
      throw error
    }
  }
}
