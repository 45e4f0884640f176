/** Items that come from several sides, for one reader. */
export class Queue<Item> implements AsyncIterableIterator<Item, undefined> {
  readonly #items: Item[] = []
  #wake: (() => void) | undefined
  #isOver = false
  #failure: { readonly error: unknown } | undefined

  push(item: Item): void {
    if (this.#isOver) return
    this.#items.push(item)
    this.#wake?.()
  }

  /** What was pushed is still read. */
  end(): void {
    this.#isOver = true
    this.#wake?.()
  }

  fail(error: unknown): void {
    this.#failure ??= { error }
    this.end()
  }

  async next(): Promise<IteratorResult<Item, undefined>> {
    while (this.#items.length === 0 && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const value = this.#items.shift()
    if (value !== undefined) return { done: false, value }
    if (this.#failure) throw this.#failure.error
    return { done: true, value: undefined }
  }

  return(): Promise<IteratorResult<Item, undefined>> {
    this.#items.length = 0
    this.end()
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
