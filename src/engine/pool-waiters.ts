interface Waiter<Item> {
  take(item: Item): void
  fail(error: unknown): void
}

/** Callers that wait for an item, the first first. */
export class PoolWaiters<Item> {
  readonly #waiting: Waiter<Item>[] = []

  get count(): number {
    return this.#waiting.length
  }

  /** Resolves to what is made of the item that it gets; rejects with the signal's reason when that aborts before. */
  add<Value>(take: (item: Item) => Value, signal: AbortSignal | undefined): Promise<Value> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#remove(waiter)
        reject(signal?.reason as Error)
      }
      const waiter: Waiter<Item> = {
        take: (item) => {
          signal?.removeEventListener('abort', onAbort)
          try {
            resolve(take(item))
          } catch (error) {
            reject(error)
          }
        },
        fail: (error) => {
          signal?.removeEventListener('abort', onAbort)
          reject(error)
        },
      }
      this.#waiting.push(waiter)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** False when nobody waits. */
  give(item: Item): boolean {
    const first = this.#waiting.shift()
    first?.take(item)
    return first !== undefined
  }

  /** False when nobody waits. */
  fail(error: unknown): boolean {
    const first = this.#waiting.shift()
    first?.fail(error)
    return first !== undefined
  }

  failAll(error: unknown): void {
    while (this.fail(error));
  }

  #remove(waiter: Waiter<Item>): void {
    const at = this.#waiting.indexOf(waiter)
    if (at >= 0) this.#waiting.splice(at, 1)
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
