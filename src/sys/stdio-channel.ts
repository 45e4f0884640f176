/**
 * A child's stdin and stdout as one stream.
 *
 * When the child stops reading, its last words are often still on the way in the other direction, so a failed write does not end the stream: what
 * follows is swallowed, and reading goes on until the child's output ends or a moment has passed.
 */
import { Duplex, type Readable, type Writable } from 'node:stream'

const lastWordsMs = 1000

/** `ref` and `unref` say whether the stream keeps this process alive. */
export interface StdioChannel extends Duplex {
  ref(): void
  unref(): void
}

export interface Stdio {
  readonly stdin: Writable
  readonly stdout: Readable
}

/** Keeps the process alive until `unref`. Destroying it destroys both ends. */
export function joinStdio(stdio: Stdio): StdioChannel {
  return new JoinedStdio(stdio)
}

type Referable<T> = T & { ref?(): unknown; unref?(): unknown }

class JoinedStdio extends Duplex implements StdioChannel {
  readonly #stdin: Referable<Writable>
  readonly #stdout: Referable<Readable>
  #writeFailure: Error | undefined

  constructor({ stdin, stdout }: Stdio) {
    super({ decodeStrings: true })
    this.#stdin = stdin
    this.#stdout = stdout
    stdin.on('error', (error) => this.#stopWriting(error))
    stdout.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) stdout.pause()
    })
    stdout.on('end', () => this.push(null))
    stdout.on('error', (error) => this.destroy(error))
    stdout.on('close', () => {
      if (!stdout.readableEnded) this.destroy()
    })
    // Of a child that said nothing and was gone before anyone listened, nothing is told any more.
    if (stdout.readableEnded) this.push(null)
    else if (stdout.destroyed) this.destroy()
  }

  ref(): void {
    this.#stdin.ref?.()
    this.#stdout.ref?.()
  }

  unref(): void {
    this.#stdin.unref?.()
    this.#stdout.unref?.()
  }

  override _read(): void {
    this.#stdout.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, taken: () => void): void {
    this.#pass([chunk], taken)
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], taken: () => void): void {
    this.#pass(
      chunks.map(({ chunk }) => chunk),
      taken,
    )
  }

  override _final(done: () => void): void {
    if (this.#writeFailure || this.#stdin.destroyed) done()
    else this.#stdin.end(() => done())
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#stdin.destroy()
    this.#stdout.destroy()
    done(error)
  }

  #pass(chunks: readonly Buffer[], taken: () => void): void {
    if (this.#writeFailure || this.#stdin.destroyed) {
      taken()
      return
    }
    const last = chunks.length - 1
    this.#stdin.cork()
    chunks.forEach((chunk, index) => {
      if (index < last) this.#stdin.write(chunk)
      else this.#stdin.write(chunk, () => taken())
    })
    this.#stdin.uncork()
  }

  #stopWriting(error: Error): void {
    if (this.#writeFailure || this.destroyed) return
    this.#writeFailure = error
    if (!this.#stdout.readableEnded) setTimeout(() => this.destroy(error), lastWordsMs).unref()
  }
}
