/** An archive that waits on disk for whoever reads it: so that a slow reader keeps nothing in the sandbox waiting. */
import type { SnapshotDraft } from '../contract/snapshot-store.js'
import { Deadline } from './deadline.js'

/** How long one that nobody begins to read is kept. */
const unreadMs = 60_000

/** One consumer. The draft is gone when all was read, or the reader left. */
export async function readSpooled(draft: SnapshotDraft, signal: AbortSignal | undefined): Promise<AsyncIterable<Uint8Array>> {
  const pieces = (await draft.seal()).archive()[Symbol.asyncIterator]()
  const done = { done: true, value: undefined } as const
  let isOver = false
  const leave = async (): Promise<typeof done> => {
    unread.cancel()
    isOver = true
    await pieces.return?.()
    await draft.discard()
    return done
  }
  const unread = new Deadline(unreadMs, () => void leave().catch(() => undefined))
  const stream: AsyncIterableIterator<Uint8Array, undefined> = {
    next: async () => {
      unread.cancel()
      if (isOver) return done
      try {
        signal?.throwIfAborted()
        const next = await pieces.next()
        return next.done === true ? await leave() : next
      } catch (error) {
        await leave()
        throw error
      }
    },
    return: leave,
    [Symbol.asyncIterator]: () => stream,
  }
  return stream
}
