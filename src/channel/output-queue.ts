/**
 * The output of one run between the channel and its one consumer, in the order of arrival.
 *
 * How many bytes wait here is bounded by credit. How much memory they take is bounded here: a piece is kept as a view only when it is a large part
 * of the buffer it arrived in, anything smaller is copied and joined to its neighbour. When pieces of both streams alternate faster than they are
 * read, they are joined across the alternation: bytes of one stream never change their order, streams may shift against each other.
 */
import { SandboxError } from '../contract/errors.js'
import type { OutputEvent } from '../contract/run.js'

type StreamName = OutputEvent['type']

/** Bytes that wait; `room` has space behind `fill` only in a segment of our own. */
interface Segment {
  readonly type: StreamName
  readonly isOwn: boolean
  room: Uint8Array
  fill: number
}

const leastViewBytes = 4096
const mostBufferPerView = 4
const maxSegments = 64

interface Waiter {
  resolve(result: IteratorResult<OutputEvent, undefined>): void
  reject(error: SandboxError): void
}

const done = { done: true, value: undefined } as const

export class OutputQueue implements AsyncIterableIterator<OutputEvent, undefined> {
  readonly #onTaken: (type: StreamName, bytes: number) => void
  readonly #segments: Segment[] = []
  readonly #waiters: Waiter[] = []
  #isClaimed = false
  #isEnded = false
  #isDiscarding = false
  #failure: SandboxError | undefined

  /** `onTaken` is called whenever the consumer took bytes or they were dropped. */
  constructor(onTaken: (type: StreamName, bytes: number) => void) {
    this.#onTaken = onTaken
  }

  get isEmpty(): boolean {
    return this.#segments.length === 0
  }

  push(type: StreamName, piece: Uint8Array): void {
    if (this.#isDiscarding) {
      this.#onTaken(type, piece.length)
      return
    }
    const waiter = this.#waiters.shift()
    if (!waiter) {
      this.#keep(type, piece)
      return
    }
    waiter.resolve({ done: false, value: { type, bytes: isWorthKeeping(piece) ? piece : new Uint8Array(piece) } })
    this.#onTaken(type, piece.length)
  }

  /** No more will be pushed. */
  end(): void {
    this.#isEnded = true
    for (const waiter of this.#waiters.splice(0)) waiter.resolve(done)
  }

  /** What waits can still be read; then iteration throws. */
  fail(failure: SandboxError): void {
    if (this.#isEnded) return
    this.#failure = failure
    for (const waiter of this.#waiters.splice(0)) waiter.reject(failure)
  }

  /** Drops what waits and all that comes; iteration ends. */
  discard(): void {
    if (this.#isDiscarding) return
    this.#isDiscarding = true
    for (const waiter of this.#waiters.splice(0)) waiter.resolve(done)
    for (const { type, fill } of this.#segments.splice(0)) this.#onTaken(type, fill)
  }

  [Symbol.asyncIterator](): this {
    if (this.#isClaimed) throw new SandboxError('conflict', 'the output of a run has one consumer, and it has one already')
    this.#isClaimed = true
    return this
  }

  next(): Promise<IteratorResult<OutputEvent, undefined>> {
    const segment = this.#segments.shift()
    if (segment) {
      const value = { type: segment.type, bytes: segment.fill === segment.room.length ? segment.room : segment.room.subarray(0, segment.fill) }
      this.#onTaken(segment.type, segment.fill)
      return Promise.resolve({ done: false, value })
    }
    if (this.#isDiscarding || this.#isEnded) return Promise.resolve(done)
    if (this.#failure) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }))
  }

  return(): Promise<IteratorResult<OutputEvent, undefined>> {
    this.discard()
    return Promise.resolve(done)
  }

  #keep(type: StreamName, piece: Uint8Array): void {
    if (isWorthKeeping(piece)) {
      this.#segments.push({ type, isOwn: false, room: piece, fill: piece.length })
      return
    }
    const neighbour = this.#neighbour(type)
    if (neighbour) append(neighbour, piece)
    else this.#segments.push({ type, isOwn: true, room: new Uint8Array(piece), fill: piece.length })
  }

  #neighbour(type: StreamName): Segment | undefined {
    const last = this.#segments.length < maxSegments ? this.#segments.at(-1) : this.#segments.findLast((each) => each.type === type)
    return last?.type === type && last.isOwn ? last : undefined
  }
}

function isWorthKeeping(piece: Uint8Array): boolean {
  return piece.length >= leastViewBytes && piece.length * mostBufferPerView >= piece.buffer.byteLength
}

function append(segment: Segment, piece: Uint8Array): void {
  const fill = segment.fill + piece.length
  if (fill > segment.room.length) {
    const room = new Uint8Array(Math.max(fill, segment.room.length * 2))
    room.set(segment.room.subarray(0, segment.fill))
    segment.room = room
  }
  segment.room.set(piece, segment.fill)
  segment.fill = fill
}
