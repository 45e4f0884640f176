import type { OutputEvent } from '../contract/run.js'
import type { OutputRing, RingPlace } from './output-ring.js'

const done = { done: true, value: undefined } as const
const nothing = new Uint8Array(0)

export interface ReaderOptions {
  readonly from: RingPlace
  /** It ends at this place, both streams together; where the ring does when not given. */
  readonly upTo?: number
  /** Called when it begins to wait for more; what this returns, when it waits no longer. */
  readonly onWait?: () => () => void
}

/** One reader of a ring: goes on from its place, and is told of each stream how much it was too slow for. */
export class RingReader implements AsyncIterableIterator<OutputEvent, undefined> {
  readonly #ring: OutputRing
  readonly #onWait: () => () => void
  readonly #upTo: number
  #at: number
  #seen: { stdout: number; stderr: number }
  readonly #missed = { stdout: 0, stderr: 0 }
  #isLeft = false
  #leave: () => void = () => undefined
  readonly #left: Promise<void>

  constructor(ring: OutputRing, { from, upTo = Infinity, onWait = () => () => undefined }: ReaderOptions) {
    this.#ring = ring
    this.#onWait = onWait
    this.#upTo = upTo
    this.#at = from.at
    this.#seen = { ...from.seen }
    this.#left = new Promise((resolve) => {
      this.#leave = resolve
    })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<OutputEvent, undefined>> {
    while (!this.#isLeft) {
      this.#skipLost()
      const event = this.#take()
      if (event) return { done: false, value: event }
      if (this.#at >= this.#upTo) return done
      if (!(await this.#more())) return done
    }
    return done
  }

  /** Leaving is quiet, also for a read that waits. */
  return(): Promise<IteratorResult<OutputEvent, undefined>> {
    this.#isLeft = true
    this.#leave()
    return Promise.resolve(done)
  }

  async #more(): Promise<boolean> {
    const waited = this.#onWait()
    try {
      return await this.#ring.more(this.#left)
    } finally {
      waited()
    }
  }

  #skipLost(): void {
    const lost = this.#ring.lostSince({ at: this.#at, seen: this.#seen })
    if (lost.stdout + lost.stderr === 0) return
    this.#missed.stdout += lost.stdout
    this.#missed.stderr += lost.stderr
    const { at, seen } = this.#ring.begin
    this.#at = at
    this.#seen = { ...seen }
  }

  #take(): OutputEvent | undefined {
    const piece = this.#read()
    for (const type of ['stdout', 'stderr'] as const) {
      // What was missed of the other stream has no bytes to come with.
      if (this.#missed[type] > 0 && piece?.type !== type) return { type, bytes: nothing, dropped: this.#takeMissed(type) }
    }
    if (!piece) return undefined
    this.#at += piece.bytes.length
    this.#seen[piece.type] += piece.bytes.length
    return this.#missed[piece.type] > 0 ? { ...piece, dropped: this.#takeMissed(piece.type) } : piece
  }

  #read(): { readonly type: OutputEvent['type']; readonly bytes: Uint8Array } | undefined {
    if (this.#at >= this.#upTo) return undefined
    const piece = this.#ring.read(this.#at)
    return piece && { ...piece, bytes: piece.bytes.subarray(0, this.#upTo - this.#at) }
  }

  #takeMissed(type: OutputEvent['type']): number {
    const missed = this.#missed[type]
    this.#missed[type] = 0
    return missed
  }
}
