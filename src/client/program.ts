/** A program on a server, as whoever started it or attached to it holds it. */
import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'
import type { Ending, OutputEvent, SignalName, TerminalSize } from '../contract/run.js'

/** Where the server is asked about it. */
export interface ProgramDoor {
  stdin(bytes: Uint8Array, options: { readonly end: boolean }): Promise<unknown>
  signal(name: string): Promise<unknown>
  resize(size: TerminalSize): Promise<unknown>
  kill(reason: string | undefined): Promise<unknown>
}

export interface ProgramParts {
  readonly pid: number
  readonly door: ProgramDoor
  readonly output: AsyncIterable<OutputEvent>
  readonly ended: Promise<Ending>
  /** The stream that tells of it. */
  readonly stream: { ref(): void; unref(): void }
}

const nothing = new Uint8Array()

export class RemoteProgram implements PlatformProcess {
  readonly pid: number
  readonly output: AsyncIterable<OutputEvent>
  readonly ended: Promise<Ending>
  readonly #parts: ProgramParts
  #isOver = false
  /** What is written is taken in its order. */
  #writing: Promise<unknown> = Promise.resolve()

  constructor(parts: ProgramParts) {
    this.#parts = parts
    this.pid = parts.pid
    this.output = parts.output
    this.ended = parts.ended
    const over = (): void => {
      this.#isOver = true
    }
    parts.ended.then(over, over)
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (!(bytes instanceof Uint8Array)) throw new SandboxError('invalid', 'stdin: must be written as bytes (Uint8Array)')
    if (this.#isOver) throw new SandboxError('conflict', 'stdin: the program has ended')
    await this.#inTurn(() => this.#parts.door.stdin(bytes, { end: false }))
  }

  async endInput(): Promise<void> {
    if (this.#isOver) return
    await this.#inTurn(() => this.#parts.door.stdin(nothing, { end: true })).catch((error: unknown) => this.#unlessOver(error))
  }

  async signal(name: SignalName): Promise<void> {
    if (!this.#isOver) await this.#parts.door.signal(name).catch((error: unknown) => this.#unlessOver(error))
  }

  async resize(size: TerminalSize): Promise<void> {
    if (!this.#isOver) await this.#parts.door.resize(size).catch((error: unknown) => this.#unlessOver(error))
  }

  async kill(reason?: string): Promise<void> {
    if (this.pid !== 0) await this.#parts.door.kill(reason).catch((error: unknown) => this.#unlessOver(error))
  }

  ref(): void {
    this.#parts.stream.ref()
  }

  unref(): void {
    this.#parts.stream.unref()
  }

  /** One that has ended meanwhile is known to nobody any more. */
  #unlessOver(error: unknown): void {
    if (error instanceof SandboxError && error.code === 'not-found') return
    throw error
  }

  #inTurn<Value>(act: () => Promise<Value>): Promise<Value> {
    const turn = this.#writing.then(act, act)
    this.#writing = turn
    return turn
  }
}
