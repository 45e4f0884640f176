import { SandboxError } from '../contract/errors.js'
import type { OutputEvent } from '../contract/run.js'

/** So much is read ahead of whoever reads. */
const mostWaitingBytes = 2 ** 18
const done = { done: true, value: undefined } as const

/** What a run prints, on its way to its one reader. A reader that leaves lets it go on: the rest is dropped. */
export class OutputQueue implements AsyncIterable<OutputEvent> {
  readonly #events: OutputEvent[] = []
  #waitingBytes = 0
  #isClaimed = false
  #isLeft = false
  #end: { readonly failure?: { readonly error: unknown } } | undefined
  #wakeReader: (() => void) | undefined
  #wakeWriter: (() => void) | undefined
  #onRead: (() => void) | undefined
  /** Settles when all of it was read or dropped. */
  readonly read = new Promise<void>((resolve) => {
    this.#onRead = resolve
  })

  /** Resolves when there is room for more. */
  async push(event: OutputEvent): Promise<void> {
    if (this.#isLeft) return
    this.#events.push(event)
    this.#waitingBytes += event.bytes.length
    this.#wakeReader?.()
    while (this.#waitingBytes > mostWaitingBytes && !this.#hasLeft()) {
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve
      })
    }
  }

  /** Asked anew after each wait. */
  #hasLeft(): boolean {
    return this.#isLeft
  }

  end(failure?: { readonly error: unknown }): void {
    this.#end ??= failure ? { failure } : {}
    this.#wakeReader?.()
    if (this.#isLeft || this.#events.length === 0 || failure) this.#onRead?.()
  }

  [Symbol.asyncIterator](): AsyncIterator<OutputEvent, undefined> {
    if (this.#isClaimed) throw new SandboxError('conflict', 'the output of a run has one consumer, and it has one already')
    this.#isClaimed = true
    return { next: () => this.#next(), return: () => this.#leave() }
  }

  async #next(): Promise<IteratorResult<OutputEvent, undefined>> {
    for (;;) {
      if (this.#isLeft) return done
      const event = this.#events.shift()
      if (event) {
        this.#waitingBytes -= event.bytes.length
        this.#wakeWriter?.()
        if (this.#end && this.#events.length === 0) this.#onRead?.()
        return { done: false, value: event }
      }
      if (this.#end?.failure) throw this.#end.failure.error
      if (this.#end) return done
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve
      })
    }
  }

  #leave(): Promise<IteratorResult<OutputEvent, undefined>> {
    this.#isLeft = true
    this.#events.length = 0
    this.#waitingBytes = 0
    this.#wakeWriter?.()
    this.#wakeReader?.()
    if (this.#end) this.#onRead?.()
    return Promise.resolve(done)
  }
}
