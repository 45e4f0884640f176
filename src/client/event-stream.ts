import { SandboxError } from '../contract/errors.js'
import type { OutputEvent } from '../contract/run.js'
import { decodeGap, FrameReader, frameTypes, type WireFrame } from '../contract/wire/frames.js'
import type { WireResponse } from '../contract/wire/transport.js'
import { brokenOff, errorFrom } from './wire.js'

/** What a stream tells: output, or anything else that has a type. */
export type StreamEvent = OutputEvent | { readonly type: string; readonly [key: string]: unknown }

interface Following {
  readonly signal: AbortSignal | undefined
  readonly onOver: () => void
}

/** The events of one answer. One reader; not reading holds the server back. */
export class EventStream {
  readonly #response: WireResponse
  readonly #pieces: AsyncIterator<Uint8Array>
  readonly #frames = new FrameReader()
  readonly #ready: StreamEvent[] = []
  readonly #following: Following
  #isOver = false

  constructor(response: WireResponse, following: Following) {
    this.#response = response
    this.#following = following
    this.#pieces = response.body[Symbol.asyncIterator]()
  }

  /** Undefined at the end. Throws what the server says went wrong, or the reason of the signal once that has aborted. */
  async next(): Promise<StreamEvent | undefined> {
    for (;;) {
      const event = this.#ready.shift()
      if (event) return event.type === 'error' && 'error' in event ? this.#fail(errorFrom(event.error as object)) : event
      if (this.#isOver) return undefined
      await this.#read()
    }
  }

  /** From now on the signal that it was asked with is without meaning. */
  unfollow(): void {
    this.#following.onOver()
  }

  /** Cuts the connection; quiet when it is over. */
  async leave(): Promise<void> {
    this.#finish()
    await this.#pieces.return?.()
  }

  ref(): void {
    this.#response.ref?.()
  }

  unref(): void {
    this.#response.unref?.()
  }

  /** As they are, of a stream that tells of one thing; leaving it leaves the stream, also while something is waited for. */
  all<Event>(): AsyncIterableIterator<Event, undefined> {
    const done = { done: true, value: undefined } as const
    return {
      next: async () => {
        const event = await this.next()
        return event === undefined ? done : { done: false, value: event as Event }
      },
      return: async () => {
        await this.leave()
        return done
      },
      [Symbol.asyncIterator]() {
        return this
      },
    }
  }

  async #read(): Promise<void> {
    try {
      const result = await this.#pieces.next()
      if (result.done) {
        if (this.#frames.isWithin) throw new SandboxError('broken', 'the answer of the server breaks off in the midst of an event')
        this.#finish()
        return
      }
      for (const frame of this.#frames.push(result.value)) if (frame.payload.length > 0 || frame.type !== frameTypes.json) this.#ready.push(eventOf(frame))
    } catch (error) {
      // One that was left ends where it was.
      if (!this.#isOver) this.#fail(brokenOff(error))
    }
  }

  #fail(error: SandboxError): never {
    this.#finish()
    this.#following.signal?.throwIfAborted()
    throw error
  }

  #finish(): void {
    this.#isOver = true
    this.#following.onOver()
  }
}

function eventOf({ type, payload }: WireFrame): StreamEvent {
  switch (type) {
    case frameTypes.stdout:
      return { type: 'stdout', bytes: payload }
    case frameTypes.stderr:
      return { type: 'stderr', bytes: payload }
    case frameTypes.stdoutDropped:
      return { type: 'stdout', ...decodeGap(payload) }
    case frameTypes.stderrDropped:
      return { type: 'stderr', ...decodeGap(payload) }
    case frameTypes.data:
      return { type: 'data', bytes: payload }
    case frameTypes.end:
      return { type: 'end' }
    default:
      return toldEvent(JSON.parse(new TextDecoder().decode(payload)))
  }
}

function toldEvent(value: unknown): StreamEvent {
  const isEvent = typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
  if (!isEvent) throw new Error('what came is no event')
  return value as StreamEvent
}
