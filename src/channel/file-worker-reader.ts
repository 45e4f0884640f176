/** The worker's stdout as frames, read when they are asked for, so that who does not ask holds the worker back. */
import type { OutputEvent } from '../contract/run.js'
import { brokenWorker, frameHeaderBytes, parseReplyHeader, type ReplyHeader } from './file-worker-frames.js'
import { readText } from './messages.js'

const maxDiagnosisBytes = 1024

export class FileWorkerReader {
  readonly #output: AsyncIterator<OutputEvent, undefined>
  #chunk: Uint8Array = new Uint8Array()
  #at = 0
  #diagnosis: Uint8Array = new Uint8Array()

  constructor(output: AsyncIterable<OutputEvent, undefined>) {
    this.#output = output[Symbol.asyncIterator]()
  }

  /** Whether bytes have arrived that nobody has asked for. */
  get isAhead(): boolean {
    return this.#at < this.#chunk.length
  }

  async header(): Promise<ReplyHeader> {
    return parseReplyHeader(await this.whole(frameHeaderBytes))
  }

  /** Exactly so many bytes; a view of what arrived, where they arrived together. */
  async whole(length: number): Promise<Uint8Array> {
    if (length === 0) return new Uint8Array()
    const first = this.pieceNow(length) ?? (await this.piece(length))
    if (first.length === length) return first
    const bytes = new Uint8Array(length)
    bytes.set(first)
    for (let fill = first.length; fill < length; ) {
      const piece = await this.piece(length - fill)
      bytes.set(piece, fill)
      fill += piece.length
    }
    return bytes
  }

  /** One byte or more, up to so many. */
  async piece(most: number): Promise<Uint8Array> {
    while (!this.isAhead) await this.#fill()
    return this.#take(most)
  }

  /** As `piece`, of what has arrived; undefined when nothing has. A promise for each of many pieces costs more than the pieces. */
  pieceNow(most: number): Uint8Array | undefined {
    return this.isAhead ? this.#take(most) : undefined
  }

  #take(most: number): Uint8Array {
    const piece = this.#chunk.subarray(this.#at, this.#at + most)
    this.#at += piece.length
    return piece
  }

  async #fill(): Promise<void> {
    const { done, value } = await this.#output.next()
    if (done) throw brokenWorker(`ended${this.#diagnosis.length > 0 ? `: ${readText(this.#diagnosis).trim()}` : ''}`)
    if (value.type === 'stdout') {
      this.#chunk = value.bytes
      this.#at = 0
    } else if (this.#diagnosis.length < maxDiagnosisBytes) {
      this.#diagnosis = Buffer.concat([this.#diagnosis, value.bytes.subarray(0, maxDiagnosisBytes - this.#diagnosis.length)])
    }
  }
}
