/** How many there were within any so long: counted in slices, each of which counts until all of it is too old, so that there are never more than there may be. */
export class RateWindow {
  readonly #sliceMs: number
  readonly #slices: number
  readonly #counts = new Map<number, number>()

  constructor({ windowMs, slices }: { readonly windowMs: number; readonly slices: number }) {
    this.#sliceMs = windowMs / slices
    this.#slices = slices
  }

  add(count: number, nowMs: number): void {
    const slice = Math.floor(nowMs / this.#sliceMs)
    this.#counts.set(slice, (this.#counts.get(slice) ?? 0) + count)
  }

  sum(nowMs: number): number {
    this.#forget(nowMs)
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Until so many have left. */
  msUntil(left: number, nowMs: number): number {
    this.#forget(nowMs)
    let gone = 0
    for (const [slice, count] of this.#counts) {
      gone += count
      if (gone >= left) return Math.ceil((slice + this.#slices + 1) * this.#sliceMs - nowMs)
    }
    return Math.ceil(this.#slices * this.#sliceMs)
  }

  #forget(nowMs: number): void {
    const oldest = Math.floor(nowMs / this.#sliceMs) - this.#slices
    for (const slice of this.#counts.keys()) {
      if (slice >= oldest) return
      this.#counts.delete(slice)
    }
  }
}
