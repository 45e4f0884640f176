import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'
import type { Ending, SignalName } from '../contract/run.js'
import { type Chunk, Feeding, toBytes } from './input.js'
import { OutputTail } from './output-tail.js'

/** The stdin of a process: written to piece by piece, or piped into. */
export class ProcessInput {
  readonly #program: PlatformProcess
  #writable: WritableStream<Chunk> | undefined
  #isEnded = false

  constructor(program: PlatformProcess) {
    this.#program = program
  }

  /** Resolves when the bytes are accepted; quiet when the program reads no more. Rejects with `conflict` after the end. */
  async write(chunk: Chunk): Promise<void> {
    const bytes = toBytes(chunk)
    if (this.#isEnded) throw new SandboxError('conflict', 'stdin: nothing can be written after its end')
    await this.#program.write(bytes)
  }

  /** Writes the last chunk, if there is one, and ends the input. Ending twice is quiet. */
  async end(chunk?: Chunk): Promise<void> {
    // What is no chunk is refused before anything is ended.
    const last = chunk === undefined ? undefined : this.write(toBytes(chunk))
    this.#isEnded = true
    await last
    await this.#program.endInput()
  }

  /** The same as a web stream; closing or aborting it ends the input. */
  get writable(): WritableStream<Chunk> {
    this.#writable ??= new WritableStream<Chunk>({ write: (chunk) => this.write(chunk), close: () => this.end(), abort: () => this.end() })
    return this.#writable
  }
}

/**
 * A program that is kept: written to, read from, signaled and waited for while other things run.
 *
 * It is never held back and never killed for what it prints: of each stream that nobody reads, or reads too slowly, the last MiB is kept and
 * `droppedBytes` counts the rest. It ends with its sandbox, and until then keeps Node.js running as a child process does.
 */
export class Process implements AsyncDisposable {
  readonly stdin: ProcessInput
  /** One reader each; a web stream is an async iterable too. */
  readonly stdout: ReadableStream<Uint8Array>
  readonly stderr: ReadableStream<Uint8Array>
  readonly #program: PlatformProcess
  readonly #tails = { stdout: new OutputTail(), stderr: new OutputTail() }
  readonly #feeding: Feeding | undefined

  /** Without a source stdin stays open to be written to. */
  constructor(program: PlatformProcess, source: AsyncIterator<unknown, unknown> | undefined) {
    this.#program = program
    this.stdin = new ProcessInput(program)
    this.stdout = toStream(this.#tails.stdout)
    this.stderr = toStream(this.#tails.stderr)
    this.#feeding = source === undefined ? undefined : new Feeding(program, source)
    program.ended.catch(() => undefined)
    void this.#pump()
  }

  /** As seen inside the cell; 0 when the program did not start, which `wait()` tells. */
  get pid(): number {
    return this.#program.pid
  }

  /** What the streams had to let go of so far. */
  get droppedBytes(): { readonly stdout: number; readonly stderr: number } {
    return { stdout: this.#tails.stdout.droppedBytes, stderr: this.#tails.stderr.droppedBytes }
  }

  /** How it ended. May be asked any number of times; rejects only when the sandbox fails. */
  async wait(): Promise<Ending> {
    const ending = await this.#program.ended
    this.#feeding?.throwIfFailed()
    return ending
  }

  /** To the program's process group; quiet when it has ended. */
  async signal(name: SignalName): Promise<void> {
    await this.#program.signal(name)
  }

  /** With all its descendants; resolves when none is left. */
  async kill(reason?: string): Promise<void> {
    await this.#program.kill(reason)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }

  async #pump(): Promise<void> {
    const { stdout, stderr } = this.#tails
    try {
      for await (const { type, bytes } of this.#program.output) this.#tails[type].push(bytes)
      stdout.end()
      stderr.end()
      await this.#program.ended
    } catch (reason) {
      stdout.fail(reason)
      stderr.fail(reason)
    } finally {
      this.#feeding?.stop()
    }
  }
}

function toStream(tail: OutputTail): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const bytes = await tail.read()
        if (bytes) controller.enqueue(bytes)
        else controller.close()
      },
      cancel: () => tail.leave(),
    },
    // Nothing is taken from the ring before someone reads, so that an unread stream keeps its end and not its beginning.
    { highWaterMark: 0 },
  )
}
