const most = 1000

/** The latest of what was told, for one reader; one that is too slow is told how many it missed. */
export class Records<Item extends { readonly missed?: number }> implements AsyncIterable<Item> {
  readonly #items: Item[] = []
  #missed = 0
  #isOver = false
  #wake: (() => void) | undefined

  push(item: Item): void {
    if (this.#isOver) return
    this.#items.push(item)
    if (this.#items.length > most) this.#missed += 1 + (this.#items.shift()?.missed ?? 0)
    this.#wake?.()
  }

  end(): void {
    this.#isOver = true
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for (;;) {
      const item = this.#items.shift()
      if (item) {
        const missed = this.#missed + (item.missed ?? 0)
        this.#missed = 0
        yield missed === 0 ? item : { ...item, missed }
      } else if (this.#isOver) return
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    }
  }
}
