/** A guest's connection as a stream, and reading the beginning of one without losing it. */
import { Duplex, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { GuestConnection } from '../contract/egress.js'
import type { MeteredStream, Sink } from './metered-stream.js'

/** Its `setTimeout`, `setNoDelay`, `setKeepAlive`, `ref` and `unref` do nothing: what HTTP calls on a socket. */
export class GuestStream extends Duplex {
  readonly #connection: GuestConnection
  readonly #output: AsyncIterator<Uint8Array>
  /** What was asked for, and has not been taken. */
  #next: Promise<IteratorResult<Uint8Array, unknown>> | undefined
  #isPoured = false
  #hasEnded = false

  constructor(connection: GuestConnection) {
    super({ allowHalfOpen: true, autoDestroy: true, emitClose: true })
    this.#connection = connection
    this.#output = connection.output[Symbol.asyncIterator]()
    // What breaks off is seen by whoever reads or writes next; here it only must not be nobody's.
    connection.closed.catch((error: unknown) => this.destroy(asError(error)))
    // Pipes in both directions listen a lot.
    this.setMaxListeners(50)
    // A guest may go at any time, also while nobody listens.
    this.on('error', () => undefined)
  }

  override _read(): void {
    if (this.#isPoured) return
    const next = this.#output.next()
    this.#next = next
    next.then(
      ({ done, value }) => {
        if (this.#isPoured) return
        this.#next = undefined
        this.#hasEnded = done === true
        this.push(done === true ? null : bufferOf(value))
      },
      (error: unknown) => this.destroy(asError(error)),
    )
  }

  /** What is left to be read goes there, past the queue of this stream, from now on. Resolves when all of it has been taken; rejects when this stream, or the sink, breaks off. */
  async pour(sink: Sink): Promise<void> {
    this.#isPoured = true
    for (let waiting = this.read() as Buffer | null; waiting !== null; waiting = this.read() as Buffer | null) await sink(waiting)
    while (!this.#hasEnded) {
      const result: IteratorResult<Uint8Array, unknown> = await (this.#next ?? this.#output.next())
      this.#next = undefined
      if (this.destroyed) throw this.errored ?? new Error('the program went away')
      if (result.done === true) this.#end()
      else await sink(bufferOf(result.value))
    }
  }

  #end(): void {
    this.#hasEnded = true
    this.push(null)
    // Nobody else will read its end.
    this.resume()
  }

  /** Past the queue of this stream, which must be empty. Resolves when the bytes are on their way; rejects when the program went away. */
  async put(bytes: Buffer): Promise<void> {
    await this.#connection.write(bytes)
    if (this.destroyed) throw this.errored ?? new Error('the program went away')
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#connection.write(chunk).then(
      () => done(),
      (error: unknown) => done(asError(error)),
    )
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), 'binary', done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#connection.end().then(
      () => done(),
      (error: unknown) => done(asError(error)),
    )
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // Its end needs no waiting for: whoever comes next has a connection of its own.
    this.#connection.destroy().catch(() => undefined)
    done(error)
  }

  /** What HTTP calls after its last answer. */
  destroySoon(): void {
    endWith(this)
  }

  setTimeout(): this {
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

/**
 * The next bytes, which are taken out; undefined at the end, when the stream breaks off, and when the signal aborts. `use` sees them at the very moment: what
 * it puts back is back before an end that came with them is told.
 */
export function readSome(stream: Duplex, signal?: AbortSignal, use?: (bytes: Buffer) => void): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const finish = (bytes: Buffer | undefined): void => {
      for (const event of ['end', 'close', 'error']) stream.off(event, stop)
      stream.off('readable', look)
      signal?.removeEventListener('abort', stop)
      try {
        if (bytes) use?.(bytes)
        resolve(bytes)
      } catch (error) {
        reject(asError(error))
      }
    }
    const stop = (): void => finish(undefined)
    const look = (): void => {
      const bytes = stream.read() as Buffer | null
      if (bytes !== null) finish(bytes)
    }
    if (stream.destroyed || stream.readableEnded || signal?.aborted === true) {
      finish(undefined)
      return
    }
    for (const event of ['end', 'close', 'error']) stream.on(event, stop)
    stream.on('readable', look)
    signal?.addEventListener('abort', stop, { once: true })
  })
}

/** What says so little at a time is not worth the copying. */
const mostParts = 256

/** Reads on until the answer is no longer `'more'`, and puts everything back. Undefined when the stream ended before that, or came in dribs and drabs. */
export async function peek<Answer>(stream: Duplex, judge: (bytes: Buffer) => Answer | 'more', signal?: AbortSignal): Promise<Answer | undefined> {
  const parts: Buffer[] = []
  while (parts.length < mostParts) {
    const judged: { answer?: Answer } = {}
    const part = await readSome(stream, signal, (bytes) => {
      parts.push(bytes)
      const whole = Buffer.concat(parts)
      const answer = judge(whole)
      if (answer === 'more') return
      judged.answer = answer
      stream.unshift(whole)
    })
    if (part === undefined || 'answer' in judged) return judged.answer
  }
  return undefined
}

/** Both ways, each until its end; when either breaks off, so does the other. Resolves when nothing more can come. */
export async function joinBoth(one: Duplex, other: Duplex): Promise<void> {
  try {
    await Promise.all([pipeline(one, other), pipeline(other, one)])
  } finally {
    one.destroy()
    other.destroy()
  }
}

/** Calls when it breaks off before its end, or has already, ahead of those who begin to listen later. */
export function onBreak(body: Readable, act: () => void): void {
  if (body.destroyed && !body.readableEnded) act()
  for (const event of ['error', 'aborted', 'close']) body.once(event, () => body.readableEnded || act())
}

/**
 * One way of two, until its end, which ends the other stream, too. It goes past the queues of both: what was written before to the one, and what was read
 * ahead of the other, goes first. Rejects when either breaks off.
 */
export async function pour(from: GuestStream | MeteredStream, into: GuestStream | MeteredStream): Promise<void> {
  const broken = new Promise<never>((_, reject) => {
    into.once('close', () => {
      if (!into.writableFinished) reject(into.errored ?? new Error('the connection broke off'))
    })
  })
  const ending = async (): Promise<void> => {
    while (into.writableLength > 0) await new Promise<unknown>((resolve) => into.write(nothing, resolve))
    await from.pour((bytes) => into.put(bytes))
    await new Promise<void>((resolve, reject) => into.end((error?: Error | null) => (error ? reject(error) : resolve())))
  }
  await Promise.race([ending(), broken])
}

const nothing = Buffer.alloc(0)
const lastWordMs = 2000

/** The last word on a connection. What still comes is read away for a moment: ending it at once would take the word with it. */
export function endWith(stream: Duplex, bytes?: Buffer): void {
  const timer = setTimeout(() => stream.destroy(), lastWordMs).unref()
  stream.once('close', () => clearTimeout(timer))
  stream.once('end', () => stream.destroy())
  if (bytes) stream.write(bytes)
  stream.end()
  stream.resume()
}

/** Takes out that many bytes which were looked at and put back. */
export function skip(stream: Duplex, count: number): void {
  stream.read(count)
}
