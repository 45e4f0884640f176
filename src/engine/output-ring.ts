import type { OutputEvent } from '../contract/run.js'

type StreamName = OutputEvent['type']

/** How many bytes of each stream. */
export type StreamCounts = Readonly<Record<StreamName, number>>

/** A place in what a program has printed, both streams together, and how much of it was of which. */
export interface RingPlace {
  readonly at: number
  readonly seen: StreamCounts
}

/** A stretch of one stream, up to and without this place. */
interface Stretch {
  readonly type: StreamName
  end: number
}

const leastCapacity = 4096
const mostPerRead = 64 * 1024
/** A program that prints to both streams in turn, a byte each, has a stretch for each byte: what is kept of it is bounded by their number instead. */
const bytesForStretch = 64
const fewestStretches = 1024

export const beginning: RingPlace = { at: 0, seen: { stdout: 0, stderr: 0 } }

/**
 * The end of what a program prints, both streams in the order of arrival, for any number of readers. It is never held back: when it is full the oldest
 * bytes go, whoever has not read them. A reader is a place and nothing more, so it costs no memory however slow it is.
 */
export class OutputRing {
  #capacity: number
  #room = new Uint8Array(0)
  #stretches: Stretch[] = []
  /** The place of the oldest byte that is here, and how much of each stream came before it. */
  #begin = 0
  #gone = { stdout: 0, stderr: 0 }
  /** The place of the next byte to come. */
  #end = 0
  #printed = { stdout: 0, stderr: 0 }
  #isEnded = false
  #failure: { readonly reason: unknown } | undefined
  readonly #waiting = new Set<() => void>()

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** Of what is kept. */
  get heldBytes(): number {
    return this.#end - this.#begin
  }

  /** Whether someone waits for what comes next. */
  get isAwaited(): boolean {
    return this.#waiting.size > 0
  }

  /** Where what comes next will be. */
  get end(): RingPlace {
    return { at: this.#end, seen: { ...this.#printed } }
  }

  push(type: StreamName, bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.#append(type, bytes.length)
    const kept = bytes.subarray(Math.max(0, bytes.length - this.#capacity))
    this.#dropBefore(this.#end - this.#capacity)
    this.#grow(this.#end - kept.length)
    this.#store(kept)
    this.#boundStretches()
    this.#wake()
  }

  /** It keeps at most so much from now on; what is too much goes at once, the oldest first. */
  resize(capacity: number): void {
    this.#capacity = capacity
    this.#dropBefore(this.#end - capacity)
    if (this.#room.length > capacity) this.#moveInto(Math.min(capacity, Math.max(this.heldBytes, leastCapacity)), this.#end)
    this.#boundStretches()
  }

  /** The program printed its last. */
  finish(): void {
    this.#isEnded = true
    this.#wake()
  }

  /** What is here can still be read; then reading throws this. */
  fail(reason: unknown): void {
    this.#failure ??= { reason }
    this.#wake()
  }

  /** Lets go of all that is kept. */
  clear(): void {
    this.#dropBefore(this.#end)
    this.#room = new Uint8Array(0)
  }

  /** What is missing since that place: nothing when it is still here. */
  lostSince({ at, seen }: RingPlace): StreamCounts {
    if (at >= this.#begin) return beginning.seen
    return { stdout: this.#gone.stdout - seen.stdout, stderr: this.#gone.stderr - seen.stderr }
  }

  /** The oldest that is here. */
  get begin(): RingPlace {
    return { at: this.#begin, seen: { ...this.#gone } }
  }

  /** Some of what stands at this place, of one stream; undefined when nothing is there yet. The place must not be before `begin`. */
  read(at: number): { readonly type: StreamName; readonly bytes: Uint8Array } | undefined {
    const stretch = this.#stretchAt(at)
    if (!stretch) return undefined
    const start = at % this.#room.length
    const size = Math.min(stretch.end - at, this.#room.length - start, mostPerRead)
    return { type: stretch.type, bytes: this.#room.slice(start, start + size) }
  }

  /** True once there may be more at the end, or it was cancelled; false when there never will be. Throws why it failed. */
  async more(cancelled: Promise<void>): Promise<boolean> {
    if (this.#isEnded) return false
    if (this.#failure) throw this.#failure.reason
    let wake: () => void = () => undefined
    const woken = new Promise<void>((resolve) => {
      wake = resolve
      this.#waiting.add(resolve)
    })
    await Promise.race([woken, cancelled])
    this.#waiting.delete(wake)
    return true
  }

  #append(type: StreamName, length: number): void {
    this.#end += length
    this.#printed[type] += length
    const last = this.#stretches.at(-1)
    if (last?.type === type) last.end = this.#end
    else this.#stretches.push({ type, end: this.#end })
  }

  #dropBefore(place: number): void {
    if (place <= this.#begin) return
    let passed = 0
    for (const { type, end } of this.#stretches) {
      const upTo = Math.min(end, place)
      this.#gone[type] += upTo - this.#begin
      this.#begin = upTo
      if (end > place) break
      passed += 1
    }
    if (passed > 0) this.#stretches.splice(0, passed)
  }

  #boundStretches(): void {
    const most = Math.max(fewestStretches, Math.floor(this.#capacity / bytesForStretch))
    if (this.#stretches.length > most) this.#dropBefore(this.#stretches[this.#stretches.length - Math.ceil(most / 2)]?.end ?? this.#end)
  }

  #grow(stored: number): void {
    const needed = Math.min(this.#capacity, this.#end - this.#begin)
    if (needed > this.#room.length) this.#moveInto(Math.min(this.#capacity, Math.max(needed, this.#room.length * 2, leastCapacity)), stored)
  }

  /** Where a byte stands depends on the room, so in another one each that is kept, up to the place `stored`, has to find its new place. */
  #moveInto(size: number, stored: number): void {
    const old = this.#room
    this.#room = new Uint8Array(size)
    for (let at = this.#begin; at < stored; ) {
      const start = at % old.length
      const piece = old.subarray(start, Math.min(old.length, start + stored - at))
      this.#write(at, piece)
      at += piece.length
    }
  }

  #store(kept: Uint8Array): void {
    if (kept.length > 0) this.#write(this.#end - kept.length, kept)
  }

  #write(at: number, bytes: Uint8Array): void {
    const start = at % this.#room.length
    const first = bytes.subarray(0, this.#room.length - start)
    this.#room.set(first, start)
    this.#room.set(bytes.subarray(first.length), 0)
  }

  #stretchAt(at: number): Stretch | undefined {
    if (at >= this.#end) return undefined
    let [low, high] = [0, this.#stretches.length - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#stretches[middle]?.end ?? 0) > at) high = middle
      else low = middle + 1
    }
    return this.#stretches[low]
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }
}
