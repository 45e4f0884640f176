import type { CallOptions, PlatformProcess } from '../contract/platform.js'
import type { Ending, SignalName, TerminalSize } from '../contract/run.js'
import { type Chunk, toBytes } from './input.js'
import { endOf } from './process.js'
import { ProcessOutput } from './process-output.js'

/** A program in a terminal of its own: a shell, an editor, anything that asks for one. It is kept, as a process is, and can be attached to by its pid or tag. */
export class Terminal implements AsyncDisposable {
  readonly #program: PlatformProcess
  readonly #output: ProcessOutput

  constructor(program: PlatformProcess) {
    this.#program = program
    this.#output = new ProcessOutput(program, 'stdout')
  }

  /** As seen inside the cell; 0 when the program did not start, which `wait()` tells. */
  get pid(): number {
    return this.#program.pid
  }

  /** What a screen would get. One reader; a web stream is an async iterable too. */
  get output(): ReadableStream<Uint8Array> {
    return this.#output.stream
  }

  /** What the reader of `output` missed so far. */
  get droppedBytes(): number {
    return this.#output.droppedBytes
  }

  /** As if typed: '\x03' is Ctrl-C, '\x04' Ctrl-D, '\r' the Enter key. Resolves when it is accepted; rejects with `conflict` when the program has ended. */
  async write(chunk: Chunk): Promise<void> {
    await this.#program.write(toBytes(chunk))
  }

  /** The program is told by SIGWINCH. */
  async resize(size: TerminalSize): Promise<void> {
    await this.#program.resize(size)
  }

  /** Without a signal, or with SIGKILL: with all its descendants, of which none is left when this resolves. Any other goes to the group of the program. */
  async kill(signal: SignalName = 'SIGKILL'): Promise<void> {
    await (signal === 'SIGKILL' ? this.#program.kill() : this.#program.signal(signal))
  }

  /** How it ended. May be asked any number of times; rejects only when the sandbox fails, or with the signal's reason: the waiting ends then, not the program. */
  async wait(options: CallOptions = {}): Promise<Ending> {
    return endOf(this.#program, options)
  }

  /** Lets Node.js end while the program runs, which ends it and its sandbox; `ref()` takes that back. */
  unref(): this {
    this.#program.unref()
    return this
  }

  ref(): this {
    this.#program.ref()
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}
