/** What was made smaller, made as it was. How large that gets is for the reader to bound: nothing is read ahead of it but a buffer. */
import { Readable } from 'node:stream'
import * as zlib from 'node:zlib'
import { SandboxError } from '../contract/errors.js'

export type Compression = 'none' | 'gzip' | 'zstd'

const magics: readonly (readonly [Compression, Buffer])[] = [
  ['gzip', Buffer.from([0x1f, 0x8b])],
  ['zstd', Buffer.from([0x28, 0xb5, 0x2f, 0xfd])],
]

/** Told by the first bytes, whatever a name or a media type says. */
export function compressionOf(first: Uint8Array): Compression {
  return magics.find(([, magic]) => Buffer.from(first.subarray(0, magic.length)).equals(magic))?.[0] ?? 'none'
}

/** Rejects with SandboxError('conflict') for what is damaged or cut short. */
export async function* decompress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const pieces = source[Symbol.asyncIterator]()
  const { head, isOver } = await firstBytes(pieces)
  const compression = compressionOf(head)
  const whole = following(head, isOver ? undefined : pieces)
  if (compression === 'none') return yield* whole
  yield* inflated(whole, compression)
}

async function* inflated(source: AsyncIterable<Uint8Array>, compression: Exclude<Compression, 'none'>): AsyncGenerator<Uint8Array, void, undefined> {
  const input = Readable.from(source, { objectMode: false })
  const output = input.pipe(inflaterOf(compression))
  input.once('error', (error) => output.destroy(error))
  try {
    yield* output as AsyncIterable<Uint8Array>
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (error instanceof SandboxError || code === undefined || !/^(?:Z_|ERR_ZSTD|ZSTD|ERR_ZLIB)/.test(code)) throw error
    throw new SandboxError('conflict', `the archive is compressed, and damaged or cut short (${code})`, { cause: error })
  } finally {
    input.destroy()
    output.destroy()
  }
}

function inflaterOf(compression: Exclude<Compression, 'none'>): NodeJS.ReadWriteStream & { destroy(error?: Error): unknown } {
  if (compression === 'gzip') return zlib.createGunzip()
  // Node.js has it from 22.15 on.
  const create = (zlib as unknown as Record<string, unknown>).createZstdDecompress as (() => ReturnType<typeof zlib.createGunzip>) | undefined
  if (create !== undefined) return create()
  throw new SandboxError('unsupported', `the archive is compressed with zstd, which Node.js ${process.versions.node} does not know`, {
    hint: 'zstd -d ARCHIVE, or Node.js 22.15',
  })
}

async function firstBytes(pieces: AsyncIterator<Uint8Array>): Promise<{ readonly head: Uint8Array; readonly isOver: boolean }> {
  let head: Uint8Array = new Uint8Array(0)
  while (head.length < 4) {
    const next: IteratorResult<Uint8Array, unknown> = await pieces.next()
    if (next.done === true) return { head, isOver: true }
    head = Buffer.concat([head, next.value])
  }
  return { head, isOver: false }
}

async function* following(head: Uint8Array, pieces: AsyncIterator<Uint8Array> | undefined): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    if (head.length > 0) yield head
    if (pieces === undefined) return
    for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) yield next.value
  } finally {
    await pieces?.return?.()
  }
}
