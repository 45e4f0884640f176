import { SandboxError } from '../contract/errors.js'
import type { FileEvent } from '../contract/files.js'

/**
 * What happens in a folder, as it happens. One consumer. Watching begins at once, and what happens from when `ready` resolves on is told; it ends when
 * the iteration is left, or with `close()`, as at the end of an `await using` block.
 */
export class FileWatch implements AsyncIterable<FileEvent>, AsyncDisposable {
  readonly ready: Promise<void>
  readonly #events: Promise<AsyncIterator<FileEvent>>
  #isClaimed = false

  constructor(watching: Promise<AsyncIterable<FileEvent>>) {
    this.#events = watching.then((events) => events[Symbol.asyncIterator]())
    this.ready = this.#events.then(() => undefined)
    // Whoever iterates is told of a failure; nobody is told twice, and none by a crash.
    this.ready.catch(() => undefined)
  }

  [Symbol.asyncIterator](): AsyncIterator<FileEvent, undefined> {
    if (this.#isClaimed) throw new SandboxError('conflict', 'files.watch: the events have one consumer, and they have one already')
    this.#isClaimed = true
    return {
      next: async () => {
        const result = await (await this.#events).next()
        return result.done === true ? { done: true, value: undefined } : result
      },
      return: async () => {
        await this.close()
        return { done: true, value: undefined }
      },
    }
  }

  /** Idempotent. */
  async close(): Promise<void> {
    const events = await this.#events.catch(() => undefined)
    await events?.return?.()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}
