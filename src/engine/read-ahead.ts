/** So many are taken before they are asked for. */
const mostAhead = 4096

/**
 * The same items, taken from their source as fast as it has them, up to a number: a source that someone else waits for is free again sooner than its consumer
 * is done. Leaving the iteration leaves the source.
 */
export async function* readAhead<T>(source: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  const state = { items: [] as T[], isOver: false, failure: undefined as { readonly error: unknown } | undefined, wake: (): void => undefined }
  const pieces = source[Symbol.asyncIterator]()
  const change = (): Promise<void> => new Promise((resolve) => (state.wake = resolve))
  let room = Promise.resolve()
  let giveRoom = (): void => undefined
  const fill = async (): Promise<void> => {
    try {
      for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) {
        state.items.push(next.value)
        state.wake()
        if (state.items.length >= mostAhead) room = new Promise((resolve) => (giveRoom = resolve))
        await room
      }
    } catch (error) {
      state.failure = { error }
    }
    state.isOver = true
    state.wake()
  }
  const filling = fill()
  try {
    for (;;) {
      const items = state.items.splice(0)
      giveRoom()
      yield* items
      if (state.items.length > 0) continue
      if (state.failure) throw state.failure.error
      if (state.isOver) return
      await change()
    }
  } finally {
    giveRoom()
    await pieces.return?.()
    await filling
  }
}
