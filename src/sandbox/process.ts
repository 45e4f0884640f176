import { SandboxError } from '../contract/errors.js'
import type { CallOptions, PlatformProcess } from '../contract/platform.js'
import type { Command, Ending } from '../contract/run.js'
import { type ChildProcessView, viewAsChildProcess } from './child-process.js'
import { type Chunk, Feeding, toBytes } from './input.js'
import { ProcessOutput } from './process-output.js'
import { ProgramHandle } from './program-handle.js'

/** The stdin of a process: written to piece by piece, or piped into. */
export class ProcessInput {
  readonly #program: PlatformProcess
  #writable: WritableStream<Chunk> | undefined
  #isEnded = false

  constructor(program: PlatformProcess) {
    this.#program = program
  }

  /** Resolves when the bytes are accepted; quiet when the program closed its stdin. Rejects with `conflict` after the end, its own or the program's. */
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

export interface ProcessOrigin {
  readonly command?: Command
  readonly source?: AsyncIterator<unknown, unknown> | undefined
}

/**
 * A view of a program that its platform keeps: written to, read from, signaled and waited for while other things run. Any number of views may be held,
 * and losing one ends nothing.
 *
 * It is never held back and never killed for what it prints: the last of it is kept (the `ring` of the sandbox's spec), and who reads too late or too
 * slowly finds in `droppedBytes` how much is missing. It ends with its sandbox, and until then keeps Node.js running as a child process does, unless `unref()`
 * was called.
 */
export class Process extends ProgramHandle {
  readonly stdin: ProcessInput
  readonly #program: PlatformProcess
  readonly #outputs: Readonly<Record<'stdout' | 'stderr', ProcessOutput>>
  readonly #feeding: Feeding | undefined
  readonly #command: Command | undefined

  /** Without a source stdin stays open to be written to; without a command it is one that was attached to. */
  constructor(program: PlatformProcess, { source, command }: ProcessOrigin = {}) {
    super(program)
    this.#program = program
    this.#command = command
    this.stdin = new ProcessInput(program)
    this.#outputs = { stdout: new ProcessOutput(program, 'stdout'), stderr: new ProcessOutput(program, 'stderr') }
    this.#feeding = source === undefined ? undefined : new Feeding(program, source)
    const stop = (): void => this.#feeding?.stop()
    program.ended.then(stop, stop)
  }

  /** One reader each; a web stream is an async iterable too. */
  get stdout(): ReadableStream<Uint8Array> {
    return this.#outputs.stdout.stream
  }

  get stderr(): ReadableStream<Uint8Array> {
    return this.#outputs.stderr.stream
  }

  /** What the readers of `stdout` and `stderr` missed so far. */
  get droppedBytes(): { readonly stdout: number; readonly stderr: number } {
    return { stdout: this.#outputs.stdout.droppedBytes, stderr: this.#outputs.stderr.droppedBytes }
  }

  /** As of any program; also rejects with why its source of input failed. */
  override async wait(options: CallOptions = {}): Promise<Ending> {
    const ending = await super.wait(options)
    this.#feeding?.throwIfFailed()
    return ending
  }

  /** The same program for code that expects what `child_process.spawn()` gives. Only in Node.js. Its streams are read apart from `stdout` and `stderr`. */
  toChildProcess(): ChildProcessView {
    const { stdin } = this
    return viewAsChildProcess({ program: this.#program, command: this.#command, write: (chunk) => stdin.write(chunk), end: () => stdin.end() })
  }
}
