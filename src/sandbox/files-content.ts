/** What can be written into a file, and what comes out of one. */
import { SandboxError } from '../contract/errors.js'
import { kindOf } from '../contract/plain-object.js'
import { GatheredBytes } from './gathered-bytes.js'

export type FilePiece = string | Uint8Array

/** A Node.js Readable is an AsyncIterable. */
export type FileContent = FilePiece | Blob | ReadableStream<FilePiece> | AsyncIterable<FilePiece>

/** A file may grow while it is read, faster than it is: what is kept in one piece has an end. */
const mostGatheredBytes = 256 * 2 ** 20

const encoder = new TextEncoder()

/** Throws SandboxError('invalid') when it is nothing that can be written. What it consists of is judged as it comes. */
export function piecesOf(content: unknown, field = 'content'): AsyncIterable<Uint8Array> {
  if (typeof content === 'string' || content instanceof Uint8Array) return onePiece(toBytes(content, field))
  if (content instanceof Blob) return streamPieces(content.stream(), field)
  if (hasMethod(content, 'getReader')) return streamPieces(content as ReadableStream<unknown>, field)
  if (hasMethod(content, Symbol.asyncIterator)) return manyPieces(content as AsyncIterable<unknown>, field)
  throw new SandboxError(
    'invalid',
    `${field}: expected a string, bytes (Uint8Array), a Blob, a ReadableStream or an async iterable of these, got ${kindOf(content)}`,
  )
}

function hasMethod(value: unknown, name: string | symbol): boolean {
  return typeof value === 'object' && value !== null && typeof (value as Record<string | symbol, unknown>)[name] === 'function'
}

function toBytes(piece: unknown, field: string): Uint8Array {
  if (typeof piece === 'string') {
    // With the flag u only half a pair is one.
    if (/\p{Surrogate}/u.test(piece))
      throw new SandboxError('invalid', `${field}: has half a surrogate pair in it, which no UTF-8 can hold; give bytes (Uint8Array)`)
    return encoder.encode(piece)
  }
  if (piece instanceof Uint8Array) return piece
  throw new SandboxError('invalid', `${field}: must consist of strings or bytes (Uint8Array), got ${kindOf(piece)}`)
}

// eslint-disable-next-line @typescript-eslint/require-await -- an async generator is the shortest way to an async iterable
async function* onePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes
}

async function* manyPieces(pieces: AsyncIterable<unknown>, field: string): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of pieces) yield toBytes(piece, field)
}

/** By its reader: not every stream of the web is an async iterable. */
async function* streamPieces(stream: ReadableStream<unknown>, field: string): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = stream.getReader()
  let isOver = false
  try {
    for (;;) {
      const { done, value } = await reader.read()
      isOver = done
      if (done) return
      yield toBytes(value, field)
    }
  } finally {
    if (!isOver) await reader.cancel().catch(() => undefined)
    reader.releaseLock()
  }
}

interface Gathering {
  readonly bytes: AsyncIterable<Uint8Array>
  readonly call: string
  /** As far as it is known before. */
  readonly expectedBytes: number
}

/** All of it in one piece. */
export async function gather({ bytes, call, expectedBytes }: Gathering): Promise<Uint8Array> {
  const tooMuch = (found: string): SandboxError =>
    new SandboxError(
      'invalid',
      `${call}: there are ${found}; at most ${mostGatheredBytes} fit in one piece: read a part of it with length, or use files.stream`,
    )
  if (expectedBytes > mostGatheredBytes) {
    await bytes[Symbol.asyncIterator]().return?.()
    throw tooMuch(`${expectedBytes} bytes`)
  }
  const gathered = new GatheredBytes()
  let length = 0
  for await (const piece of bytes) {
    length += piece.length
    if (length > mostGatheredBytes) throw tooMuch(`more than ${mostGatheredBytes} bytes`)
    gathered.append(piece)
  }
  return gathered.toBytes()
}

/** Nothing is read ahead; cancelling ends the reading. */
export function toStream(bytes: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const pieces = bytes[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const result = await pieces.next()
        if (result.done === true) controller.close()
        else controller.enqueue(result.value)
      },
      async cancel() {
        await pieces.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}
