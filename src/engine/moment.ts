/** A while during which others wait. */
export class Moment {
  #ended: Promise<void> | undefined
  #end: (() => void) | undefined

  /** Settles when it is over; undefined when there is none. */
  get ended(): Promise<void> | undefined {
    return this.#ended
  }

  begin(): void {
    this.#ended = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  /** Quiet when there is none. */
  end(): void {
    this.#ended = undefined
    this.#end?.()
  }
}
