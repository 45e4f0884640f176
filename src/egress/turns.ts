/** For what costs the host time at a guest's wish: one of a sandbox at a time, and in between everybody else has theirs. */
export class Turns {
  #last: Promise<void> = Promise.resolve()

  take(): Promise<void> {
    this.#last = this.#last.then(
      () =>
        new Promise((resolve) => {
          setImmediate(resolve)
        }),
    )
    return this.#last
  }
}
