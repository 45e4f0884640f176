/** A promise settled from outside. Nobody is forced to look at it: its rejection never counts as unhandled. */
export class Latch<T> {
  readonly promise: Promise<T>
  resolve!: (value: T) => void
  reject!: (reason: unknown) => void

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
    this.promise.catch(ignore)
  }
}

function ignore(): void {}
