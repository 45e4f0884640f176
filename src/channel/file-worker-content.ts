/** Content on its way to the worker, cut into frames. */
import { contentType, frameHeaderBytes, maxContentBytes, writeHeader } from './file-worker-frames.js'

/** Up to here one write with a copy costs less than two without. */
const maxCopiedBytes = 2048

export interface ContentSink {
  /** Resolves when the memory of the bytes may be used again. */
  write(bytes: Uint8Array): Promise<unknown>
}

export async function sendContent(sink: ContentSink, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; at += maxContentBytes) {
    const piece = bytes.subarray(at, at + maxContentBytes)
    const isCopied = piece.length <= maxCopiedBytes
    const frame = Buffer.allocUnsafe(frameHeaderBytes + (isCopied ? piece.length : 0))
    writeHeader(frame, 0, { type: contentType, length: piece.length })
    if (isCopied) frame.set(piece, frameHeaderBytes)
    await sink.write(frame)
    if (!isCopied) await sink.write(piece)
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
