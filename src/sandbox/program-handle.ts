import { checkCallOptions, unlessAborted } from '../contract/call-options.js'
import type { CallOptions, PlatformProcess } from '../contract/platform.js'
import type { Ending, SignalName, TerminalSize } from '../contract/run.js'

/** What a caller holds of a program that is kept, in a terminal or not. */
export class ProgramHandle implements AsyncDisposable {
  readonly #program: PlatformProcess

  constructor(program: PlatformProcess) {
    this.#program = program
  }

  /** As seen inside the cell; 0 when the program did not start, which `wait()` tells. */
  get pid(): number {
    return this.#program.pid
  }

  /** How it ended. May be asked any number of times; rejects only when the sandbox fails, or with the signal's reason: the waiting ends then, not the program. */
  async wait(options: CallOptions = {}): Promise<Ending> {
    const { signal } = checkCallOptions(options)
    return unlessAborted(this.#program.ended, signal)
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

  /** Of its terminal, which the program is told by SIGWINCH; rejects with `conflict` when it has none. */
  async resize(size: TerminalSize): Promise<void> {
    await this.#program.resize(size)
  }

  /** Lets Node.js end while the program runs, which ends it and its sandbox; `ref()` takes that back. Both are the program's, not this view's. */
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
