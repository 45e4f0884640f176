/** The events of one execution between its kernel and its one consumer. Bounded: whoever fills it waits for room, which holds the code back. */
import type { CodeEnding, CodeEvent } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'

/** What waits unread before the kernel does too; one event more than that may be held. */
const mostUnreadBytes = 2 ** 20
/** Of small pieces that wait, neighbours of one stream are put together, so that many of them cost little. */
const mostJoinedBytes = 4096
/** What an event takes besides its bytes. */
const bytesPerEvent = 128

interface Waiting {
  readonly event: CodeEvent
  readonly bytes: number
}

interface Reader {
  readonly resolve: (next: IteratorResult<CodeEvent, undefined>) => void
  readonly reject: (reason: unknown) => void
}

const done = { done: true, value: undefined } as const

export class EventQueue implements AsyncIterableIterator<CodeEvent, undefined> {
  readonly #onLeft: () => Promise<void>
  readonly #waiting: Waiting[] = []
  readonly #readers: Reader[] = []
  #unreadBytes = 0
  #isClaimed = false
  #state: 'open' | 'ended' | 'left' = 'open'
  #failure: { readonly reason: unknown } | undefined
  #isOverflowing = false
  #droppedResults = 0
  #droppedBytes = 0
  #room: { readonly promise: Promise<void>; readonly give: () => void } | undefined

  /** `onLeft`: the consumer does not want the rest. */
  constructor(onLeft: () => Promise<void>) {
    this.#onLeft = onLeft
  }

  get hasRoom(): boolean {
    return this.#unreadBytes < mostUnreadBytes
  }

  /** Resolves when there is room, and at the latest when the queue is over. */
  async room(): Promise<void> {
    if (this.hasRoom || this.#isOverflowing || this.#state !== 'open') return
    if (!this.#room) {
      let give = (): void => undefined
      const promise = new Promise<void>((resolve) => (give = resolve))
      this.#room = { promise, give }
    }
    await this.#room.promise
  }

  /** Never waits; how much is in it is the caller's to look at, with `room`. Dropped when nobody wants it. */
  push(event: CodeEvent, bytes: number): void {
    if (this.#state !== 'open') return
    if (this.#isOverflowing && !this.hasRoom) {
      this.drop(event)
      return
    }
    const reader = this.#readers.shift()
    if (reader) reader.resolve({ done: false, value: event })
    else this.#keep(event, bytes)
  }

  /** Counts what its consumer is not given, so that it can be told. */
  drop(event: CodeEvent): void {
    if (event.type === 'result') this.#droppedResults += 1
    else if ('bytes' in event) this.#droppedBytes += event.bytes.length
  }

  get dropped(): Pick<CodeEnding, 'resultsDropped' | 'outputDropped'> {
    return {
      ...(this.#droppedResults > 0 && { resultsDropped: this.#droppedResults }),
      ...(this.#droppedBytes > 0 && { outputDropped: this.#droppedBytes }),
    }
  }

  /** From now on nobody waits for room: what finds none is dropped. */
  overflow(): void {
    this.#isOverflowing = true
    this.#giveRoom()
  }

  /** No more will come; what waits can still be read. */
  end(failure?: { readonly reason: unknown }): void {
    if (this.#state !== 'open') return
    this.#state = 'ended'
    this.#failure = failure
    this.#giveRoom()
    for (const reader of this.#readers.splice(0)) this.#finish(reader)
  }

  [Symbol.asyncIterator](): this {
    if (this.#isClaimed) throw new SandboxError('conflict', 'the events of an execution have one consumer, and they have one already')
    this.#isClaimed = true
    return this
  }

  next(): Promise<IteratorResult<CodeEvent, undefined>> {
    const first = this.#waiting.shift()
    if (first) {
      this.#unreadBytes -= first.bytes
      if (this.hasRoom) this.#giveRoom()
      return Promise.resolve({ done: false, value: first.event })
    }
    return new Promise((resolve, reject) => {
      const reader = { resolve, reject }
      if (this.#state === 'open') this.#readers.push(reader)
      else this.#finish(reader)
    })
  }

  async return(): Promise<IteratorResult<CodeEvent, undefined>> {
    const isEarly = this.#state === 'open'
    this.discard()
    if (isEarly) await this.#onLeft()
    return done
  }

  /** Nobody wants what waits, nor what comes. */
  discard(): void {
    this.#state = 'left'
    this.#failure = undefined
    this.#waiting.length = 0
    this.#unreadBytes = 0
    this.#giveRoom()
    for (const reader of this.#readers.splice(0)) this.#finish(reader)
  }

  #keep(event: CodeEvent, bytes: number): void {
    const last = this.#waiting.at(-1)
    const joined = last && last.bytes + bytes <= mostJoinedBytes ? join(last.event, event) : undefined
    if (joined) this.#waiting[this.#waiting.length - 1] = { event: joined, bytes: (last?.bytes ?? 0) + bytes }
    else this.#waiting.push({ event, bytes: bytes + bytesPerEvent })
    this.#unreadBytes += joined ? bytes : bytes + bytesPerEvent
  }

  #finish({ resolve, reject }: Reader): void {
    if (this.#failure) reject(this.#failure.reason)
    else resolve(done)
  }

  #giveRoom(): void {
    this.#room?.give()
    this.#room = undefined
  }
}

function join(last: CodeEvent, event: CodeEvent): CodeEvent | undefined {
  if (!('bytes' in last) || !('bytes' in event) || last.type !== event.type) return undefined
  return { type: event.type, bytes: Buffer.concat([last.bytes, event.bytes]) }
}
