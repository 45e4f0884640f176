import type { PlatformProcess } from '../contract/platform.js'
import type { OutputEvent } from '../contract/run.js'

/** One stream of a process that is kept, as a web stream. Nothing is read before someone reads, and what was missed is counted. */
export class ProcessOutput {
  readonly stream: ReadableStream<Uint8Array>
  readonly #program: PlatformProcess
  readonly #type: OutputEvent['type']
  #events: AsyncIterator<OutputEvent, undefined> | undefined
  #droppedBytes = 0

  constructor(program: PlatformProcess, type: OutputEvent['type']) {
    this.#program = program
    this.#type = type
    this.stream = new ReadableStream<Uint8Array>(
      { pull: (controller) => this.#pull(controller), cancel: () => this.#events?.return?.().then(() => undefined) },
      { highWaterMark: 0 },
    )
  }

  /** What the reader of the stream was too late or too slow for, so far. */
  get droppedBytes(): number {
    return this.#droppedBytes
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#events ??= this.#program.output[Symbol.asyncIterator]() as AsyncIterator<OutputEvent, undefined>
    for (;;) {
      const { done, value } = await this.#events.next()
      if (done === true) {
        // One that the sandbox ended has no end of its own to be told.
        await this.#program.ended
        controller.close()
        return
      }
      if (value.type !== this.#type) continue
      this.#droppedBytes += value.dropped ?? 0
      if (value.bytes.length === 0) continue
      controller.enqueue(value.bytes)
      return
    }
  }
}
