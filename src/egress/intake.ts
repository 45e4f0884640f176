/**
 * Where the bytes of one socket are received: two buffers in turn, instead of a new one for each read, which would keep the collector of garbage busier than
 * everything else together. Nothing is received into a buffer before its last bytes are done with: see `lend`.
 */
import type { OnReadOpts } from 'node:net'

const usualBytes = 65_536
/** From the first that was full on: whoever sends that fast is read from in larger pieces. */
const largeBytes = 262_144

export class Intake {
  #buffer: Buffer = Buffer.allocUnsafeSlow(usualBytes)
  #other: Buffer | undefined
  #lent = 0
  /** Told of what was received; the bytes are a view that is good only until it returns, unless it has them lent or given. False: nothing more is read. */
  onBytes: (bytes: Buffer) => boolean = () => false

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
    const free = this.#other
    const size = bytes.length === this.#buffer.length ? largeBytes : this.#buffer.length
    this.#other = this.#buffer
    this.#buffer = free && free.length >= size ? free : Buffer.allocUnsafeSlow(size)
    this.#lent += 1
    return () => {
      this.#lent -= 1
    }
  }

  /** What was just received, for good. */
  give(bytes: Buffer): Buffer {
    if (bytes.length * 2 < this.#buffer.length) return Buffer.from(bytes)
    this.#buffer = Buffer.allocUnsafeSlow(usualBytes)
    return bytes
  }
}
