/**
 * Where the bytes of one socket are received: two buffers in turn, instead of a new one for each read, which would keep the collector of garbage busier than
 * everything else together; and large ones of the sandbox's reserve, while much comes and there are any. Nothing is received into a buffer before its last bytes
 * are done with: see `lend`.
 */
import type { OnReadOpts } from 'node:net'
import { largeBytes, type Reserve } from './reserve.js'

const usualBytes = 65_536
/** From the first that was full on: whoever sends that fast is read from in larger pieces. */
const widerBytes = 131_072

export class Intake {
  readonly #reserve: Reserve
  /** Where the next bytes go. */
  #buffer: Buffer = Buffer.allocUnsafeSlow(usualBytes)
  /** Its own others, two at most, the one that was used last at the end. When the first of two is lent so is the second, and nothing is received. */
  readonly #own: Buffer[] = []
  #lent = 0
  /** Of these, how many of the reserve's. */
  #lentLarge = 0
  #isClosed = false
  /** Told of what was received; the bytes are a view that is good only until it returns, unless it has them lent or given. False: nothing more is read. */
  onBytes: (bytes: Buffer) => boolean = () => false

  constructor(reserve: Reserve) {
    this.#reserve = reserve
  }

  /** As `net.connect` takes it. */
  readonly onread: OnReadOpts = {
    buffer: () => this.#buffer,
    callback: (count) => this.onBytes(this.#buffer.subarray(0, count)),
  }

  /** Whether more may be received. */
  get isFree(): boolean {
    return this.#lent < 2
  }

  /** Whether nothing is lent. */
  get isIdle(): boolean {
    return this.#lent === 0
  }

  /** Leaves what was just received alone until the answer is called; in the order in which it was lent. */
  lend(bytes: Buffer): () => void {
    const lent = this.#buffer
    const wasLarge = lent.length === largeBytes
    if (!wasLarge) this.#own.push(lent)
    this.#lent += 1
    this.#lentLarge += wasLarge ? 1 : 0
    const isMuch = bytes.length === lent.length || bytes.length >= widerBytes
    this.#buffer = (isMuch && !this.#isClosed ? this.#reserve.take() : undefined) ?? this.#nextOwn(isMuch ? widerBytes : usualBytes)
    return () => {
      this.#lent -= 1
      if (!wasLarge || this.#isClosed) return
      this.#lentLarge -= 1
      this.#reserve.giveBack(lent)
    }
  }

  #nextOwn(size: number): Buffer {
    const oldest = this.#own.length < 2 ? undefined : this.#own.shift()
    return oldest && oldest.length >= size ? oldest : Buffer.allocUnsafeSlow(size)
  }

  /** What was just received, for good. */
  give(bytes: Buffer): Buffer {
    if (bytes.length * 2 < this.#buffer.length || this.#buffer.length === largeBytes) return Buffer.from(bytes)
    this.#buffer = Buffer.allocUnsafeSlow(usualBytes)
    return bytes
  }

  /** Nothing more is received. Idempotent. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (; this.#lentLarge > 0; this.#lentLarge -= 1) this.#reserve.lose()
    if (this.#buffer.length === largeBytes) this.#reserve.giveBack(this.#buffer)
    this.#buffer = Buffer.alloc(0)
    this.#own.splice(0)
  }
}
