import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'

export type Chunk = string | Uint8Array

/** All that a program may be given to read. A Node.js Readable is an AsyncIterable. */
export type InputSource = Chunk | ArrayBuffer | Iterable<Chunk> | AsyncIterable<Chunk> | WebStream

/** As much of a web ReadableStream as is used here, so that any implementation of it fits. */
interface WebStream {
  getReader(): { read(): Promise<{ done: boolean; value?: unknown }>; cancel(reason?: unknown): Promise<void> }
}

/** The same of Node's Readable. */
interface NodeStream {
  iterator(options: { readonly destroyOnReturn: boolean }): AsyncIterator<unknown, unknown>
}

function isLike<T extends object>(value: unknown, method: keyof T): value is T {
  return typeof value === 'object' && value !== null && method in value && typeof value[method as keyof typeof value] === 'function'
}

const encoder = new TextEncoder()

export function toBytes(chunk: unknown): Uint8Array {
  if (typeof chunk === 'string') return encoder.encode(chunk)
  if (chunk instanceof Uint8Array) return chunk
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk)
  throw new SandboxError('invalid', `stdin: must consist of strings or bytes (Uint8Array), got ${chunk === null ? 'null' : typeof chunk}`)
}

/** Throws SandboxError('invalid') when it is nothing that can be read. */
export function chunksOf(source: InputSource): AsyncIterator<unknown, unknown> {
  if (typeof source === 'string' || source instanceof Uint8Array) return once(source)
  if (source instanceof ArrayBuffer) return once(new Uint8Array(source))
  if (isLike<WebStream>(source, 'getReader')) return readStream(source)
  // A stream of Node's would be destroyed when the program ends before it; it belongs to the caller.
  if (isLike<NodeStream>(source, 'iterator')) return source.iterator({ destroyOnReturn: false })
  if (isLike<AsyncIterable<unknown>>(source, Symbol.asyncIterator)) return source[Symbol.asyncIterator]()
  if (isLike<Iterable<unknown>>(source, Symbol.iterator) && !ArrayBuffer.isView(source)) return oneByOne(source)
  throw new SandboxError('invalid', 'stdin: must be a string, a Uint8Array, an ArrayBuffer, a ReadableStream or an iterable of these')
}

// eslint-disable-next-line @typescript-eslint/require-await -- an async generator is the shortest way to an async iterator
async function* once(chunk: Chunk): AsyncGenerator<Chunk, void> {
  yield chunk
}

// eslint-disable-next-line @typescript-eslint/require-await -- as above
async function* oneByOne(chunks: Iterable<unknown>): AsyncGenerator<unknown, void> {
  yield* chunks
}

function readStream(stream: WebStream): AsyncIterator<unknown, unknown> {
  const reader = stream.getReader()
  return {
    async next() {
      const { done, value } = await reader.read()
      return done ? { done: true, value: undefined } : { done: false, value }
    },
    async return() {
      await reader.cancel()
      return { done: true, value: undefined }
    },
  }
}

/** Hands a source to a program as fast as it reads, and its end after it. */
export class Feeding {
  readonly #program: PlatformProcess
  readonly #chunks: AsyncIterator<unknown, unknown>
  #isStopped = false
  #failure: { readonly cause: unknown } | undefined

  constructor(program: PlatformProcess, chunks: AsyncIterator<unknown, unknown>) {
    this.#program = program
    this.#chunks = chunks
    void this.#feed()
  }

  /** The program is over: what the source still has is left unread. */
  stop(): void {
    if (this.#isStopped) return
    this.#isStopped = true
    // Not waited for: a source that is being waited for answers this only when it has something.
    this.#chunks.return?.().catch(() => undefined)
  }

  /** What the source threw, if it did; the program was killed then, for it would take the part it got for the whole. */
  throwIfFailed(): void {
    if (this.#failure) throw this.#failure.cause
  }

  async #feed(): Promise<void> {
    for (;;) {
      const bytes = await this.#read()
      if (this.#isStopped) return
      try {
        await (bytes ? this.#program.write(bytes) : this.#program.endInput())
      } catch {
        // The sandbox failed; whoever waits for the program is told why.
        this.stop()
        return
      }
      if (!bytes) return
    }
  }

  /** Undefined at the end of the source. */
  async #read(): Promise<Uint8Array | undefined> {
    try {
      const { done, value } = await this.#chunks.next()
      return done ? undefined : toBytes(value)
    } catch (cause) {
      if (this.#isStopped) return undefined
      this.#failure = { cause }
      this.stop()
      await this.#program.kill('its stdin could not be read').catch(() => undefined)
      return undefined
    }
  }
}
