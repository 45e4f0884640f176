import type { PlatformProcess } from '../contract/platform.js'
import { type Chunk, toBytes } from './input.js'
import { ProcessOutput } from './process-output.js'
import { ProgramHandle } from './program-handle.js'

/** A program in a terminal of its own: a shell, an editor, anything that asks for one. It is kept, as a process is, and can be attached to by its pid or tag. */
export class Terminal extends ProgramHandle {
  readonly #program: PlatformProcess
  readonly #output: ProcessOutput

  constructor(program: PlatformProcess) {
    super(program)
    this.#program = program
    this.#output = new ProcessOutput(program, 'stdout')
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
}
