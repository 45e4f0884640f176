import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'
import type { Ending, SignalName, TerminalSize } from '../contract/run.js'
import { type ChildProcessView, viewAsChildProcess } from './child-process.js'
import { type Chunk, Feeding, toBytes } from './input.js'
import { ProcessOutput } from './process-output.js'

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
 * A view of a program that its platform keeps: written to, read from, signaled and waited for while other things run. Any number of views may be held,
 * and losing one ends nothing.
 *
 * It is never held back and never killed for what it prints: the last of it is kept (the `ring` of the sandbox's spec), and who reads too late or too
 * slowly finds in `droppedBytes` how much is missing. It ends with its sandbox, and until then keeps Node.js running as a child process does.
 */
export class Process implements AsyncDisposable {
  readonly stdin: ProcessInput
  readonly #program: PlatformProcess
  readonly #outputs: Readonly<Record<'stdout' | 'stderr', ProcessOutput>>
  readonly #feeding: Feeding | undefined

  /** Without a source stdin stays open to be written to. */
  constructor(program: PlatformProcess, source?: AsyncIterator<unknown, unknown>) {
    this.#program = program
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

  /** As seen inside the cell; 0 when the program did not start, which `wait()` tells. */
  get pid(): number {
    return this.#program.pid
  }

  /** What the readers of `stdout` and `stderr` missed so far. */
  get droppedBytes(): { readonly stdout: number; readonly stderr: number } {
    return { stdout: this.#outputs.stdout.droppedBytes, stderr: this.#outputs.stderr.droppedBytes }
  }

  /** How it ended. May be asked any number of times; rejects only when the sandbox fails. */
  async wait(): Promise<Ending> {
    const ending = await this.#program.ended
    this.#feeding?.throwIfFailed()
    return ending
  }

  /** To the program's process group; quiet when it has ended. What is asked of the sandbox after this happens after it. */
  async signal(name: SignalName): Promise<void> {
    await this.#program.signal(name)
  }

  /**
   * Without a signal, or with SIGKILL: the program with all its descendants, of which none is left when this resolves. With any other the same as
   * `signal()`: it is delivered, and whether the program heeds it is the program's to say.
   */
  async kill(signal: SignalName = 'SIGKILL'): Promise<void> {
    await (signal === 'SIGKILL' ? this.#program.kill() : this.#program.signal(signal))
  }

  /** Of its terminal; rejects with `conflict` when it has none. */
  async resize(size: TerminalSize): Promise<void> {
    await this.#program.resize(size)
  }

  /** The same program for code that expects what `child_process.spawn()` gives. Only in Node.js. Its streams are read apart from `stdout` and `stderr`. */
  toChildProcess(): ChildProcessView {
    const { stdin } = this
    return viewAsChildProcess({ program: this.#program, wait: () => this.wait(), write: (chunk) => stdin.write(chunk), end: () => stdin.end() })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}
