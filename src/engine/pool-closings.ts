/** What is closed while nobody waits for it. How many are on their way is bounded by making whoever wants more wait. */
export class Closings {
  readonly #pending = new Set<Promise<void>>()
  readonly #most: number
  readonly #onChange: () => void

  constructor(most: number, onChange: () => void) {
    this.#most = most
    this.#onChange = onChange
  }

  get count(): number {
    return this.#pending.size
  }

  /** `onFailure` is told of what was not closed. */
  begin(close: () => Promise<void>, onFailure: (error: unknown) => void): void {
    const closing = close()
      .catch(onFailure)
      .finally(() => {
        this.#pending.delete(closing)
        this.#onChange()
      })
    this.#pending.add(closing)
    this.#onChange()
  }

  /** Resolves when there is room for one more. */
  async room(): Promise<void> {
    while (this.#pending.size >= this.#most) await Promise.race(this.#pending)
  }

  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending)
  }
}
