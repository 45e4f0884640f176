/** Content on its way to the worker, cut into frames. */
import { contentType, frameHeaderBytes, maxPayloadBytes, writeHeader } from './file-worker-frames.js'

const framesAtOnce = 4
/** With its header a frame is then as long as a pipe holds, and goes through it in one piece. */
const pieceBytes = maxPayloadBytes - frameHeaderBytes

export interface ContentSink {
  write(bytes: Uint8Array): Promise<unknown>
}

/** One for each worker: its buffer is used again for every piece, because a write is done with the bytes when it resolves. */
export class ContentFrames {
  readonly #sink: ContentSink
  #buffer: Buffer | undefined

  constructor(sink: ContentSink) {
    this.#sink = sink
  }

  async send(bytes: Uint8Array): Promise<void> {
    this.#buffer ??= Buffer.allocUnsafe(framesAtOnce * maxPayloadBytes)
    for (let at = 0; at < bytes.length; ) {
      let fill = 0
      for (let frame = 0; frame < framesAtOnce && at < bytes.length; frame += 1) {
        const piece = bytes.subarray(at, at + pieceBytes)
        writeHeader(this.#buffer, fill, { type: contentType, length: piece.length })
        this.#buffer.set(piece, fill + frameHeaderBytes)
        fill += frameHeaderBytes + piece.length
        at += piece.length
      }
      await this.#sink.write(this.#buffer.subarray(0, fill))
    }
  }
}

/** Gives every piece of the content to `send`, until it is at its end or `until` has settled; a source that is left early is told. */
export async function pump(content: AsyncIterable<Uint8Array>, until: Promise<unknown>, send: (piece: Uint8Array) => Promise<void>): Promise<void> {
  const source = content[Symbol.asyncIterator]()
  const state = { isOver: false, wake: (): void => undefined }
  const stop = (): void => {
    state.isOver = true
    state.wake()
  }
  until.then(stop, stop)
  while (!state.isOver) {
    const next = await new Promise<IteratorResult<Uint8Array> | undefined>((resolve, reject) => {
      state.wake = () => resolve(undefined)
      source.next().then(resolve, reject)
    })
    if (next?.done) return
    if (next) await send(next.value)
  }
  // Not waited for: a source that hangs must not hold up the failure that made it needless.
  source.return?.().catch(() => undefined)
}
