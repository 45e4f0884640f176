/** The same until the signal aborts: then it ends at once, also when the source waits for what never comes, and the source is left. */
export function leaving<Item>(source: AsyncIterable<Item>, signal: AbortSignal): AsyncIterableIterator<Item, undefined> {
  const done = { done: true, value: undefined } as const
  const items = source[Symbol.asyncIterator]()
  let wake = (): void => undefined
  const leave = (): void => {
    wake()
    void Promise.resolve(items.return?.()).catch(() => undefined)
  }
  const stop = (): void => signal.removeEventListener('abort', leave)
  if (signal.aborted) leave()
  else signal.addEventListener('abort', leave, { once: true })
  return {
    next: () => {
      if (signal.aborted) return Promise.resolve(done)
      return new Promise((resolve, reject) => {
        wake = () => resolve(done)
        items.next().then(
          (result) => {
            if (result.done) stop()
            resolve(result.done ? done : result)
          },
          (error: unknown) => {
            stop()
            reject(error)
          },
        )
      })
    },
    return: () => {
      stop()
      if (!signal.aborted) leave()
      return Promise.resolve(done)
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
