import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'
import type { Ending, OutputEvent, SignalName, TerminalSize } from '../contract/run.js'
import type { UserName } from '../contract/spec.js'
import type { RunPlan } from '../policy/run.js'
import { beginning, OutputRing, type RingPlace } from './output-ring.js'
import { RingReader } from './output-ring-reader.js'
import type { RunningProgram } from './running-program.js'

/** Told of what makes a kept process one that is of use to someone. */
export interface KeptActivity {
  /** It printed something, was written to, or was attached to. */
  touch(): void
  /** Someone waits for what it prints, until what this returns is called. */
  hold(): () => void
}

export interface Keeping {
  readonly program: RunningProgram
  readonly plan: RunPlan
  readonly activity: KeptActivity
}

/** A program that the engine keeps: its output is taken whoever reads, and it goes on whoever leaves. */
export class KeptProcess {
  readonly startedAt = new Date().toISOString()
  readonly #keeping: Keeping
  readonly #ring: OutputRing
  #ending: Ending | undefined

  constructor(keeping: Keeping) {
    const { program } = keeping
    this.#keeping = keeping
    this.#ring = new OutputRing(this.#ringBytes)
    // One with an aside has an owner, who reads what it prints.
    if (!this.isOwned) void this.#drain()
    program.ended.then(
      (ending) => {
        this.#ending = ending
        if (this.isOwned) this.#ring.finish()
      },
      (reason: unknown) => this.#ring.fail(reason),
    )
  }

  get pid(): number {
    return this.#keeping.program.pid
  }

  get tag(): string | undefined {
    return this.#keeping.plan.kept?.tag
  }

  get command(): RunPlan['command'] {
    return this.#keeping.plan.command
  }

  get user(): UserName {
    return this.#keeping.plan.user
  }

  get isTerminal(): boolean {
    return this.#keeping.plan.terminal !== undefined
  }

  /** Its streams and its input are someone's alone. */
  get isOwned(): boolean {
    return this.#keeping.plan.aside
  }

  /** Undefined while it runs. */
  get ending(): Ending | undefined {
    return this.#ending
  }

  get ended(): Promise<Ending> {
    return this.#keeping.program.ended
  }

  get heldBytes(): number {
    return this.#ring.heldBytes
  }

  /** As its run is counted as a whole; undefined where nothing counts it. */
  countedCpuMs(): number | undefined {
    return this.#keeping.program.countedCpuMs()
  }

  /** Of its output, though it may keep more when it is alone. */
  holdAtMost(bytes: number): void {
    this.#ring.resize(Math.min(this.#ringBytes, bytes))
  }

  /** Of one that has ended: nobody can read what it printed any more. */
  forgetOutput(): void {
    this.#ring.clear()
  }

  /** From its first byte on, or from the next; up to its last, or to the latest. */
  view({ replay, follow }: { readonly replay: boolean; readonly follow: boolean }): PlatformProcess {
    const { end } = this.#ring
    return new KeptView(this.#keeping, { ring: this.#ring, from: replay ? beginning : end, upTo: follow ? Infinity : end.at })
  }

  get #ringBytes(): number {
    return this.#keeping.plan.kept?.ringBytes ?? 0
  }

  async #drain(): Promise<void> {
    const { program, activity } = this.#keeping
    try {
      for await (const { type, bytes } of program.output) {
        this.#ring.push(type, bytes)
        activity.touch()
      }
      this.#ring.finish()
    } catch (reason) {
      this.#ring.fail(reason)
    }
  }
}

interface Outlook {
  readonly ring: OutputRing
  readonly from: RingPlace
  readonly upTo: number
}

/** What one caller holds of a kept process. */
class KeptView implements PlatformProcess {
  readonly output: AsyncIterable<OutputEvent>
  readonly #keeping: Keeping

  constructor(keeping: Keeping, { ring, from, upTo }: Outlook) {
    this.#keeping = keeping
    this.output = { [Symbol.asyncIterator]: () => new RingReader(ring, { from, upTo, onWait: () => keeping.activity.hold() }) }
  }

  get pid(): number {
    return this.#keeping.program.pid
  }

  get ended(): Promise<Ending> {
    return this.#keeping.program.ended
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#checkInput()
    await this.#keeping.program.write(bytes)
  }

  async endInput(): Promise<void> {
    this.#checkInput()
    await this.#keeping.program.endInput()
  }

  async signal(name: SignalName): Promise<void> {
    await this.#keeping.program.signal(name)
  }

  async resize(size: TerminalSize): Promise<void> {
    await this.#keeping.program.resize(size)
  }

  async kill(reason?: string): Promise<void> {
    await this.#keeping.program.kill(reason)
  }

  ref(): void {
    this.#keeping.program.ref()
  }

  unref(): void {
    this.#keeping.program.unref()
  }

  #checkInput(): void {
    const { plan, activity, program } = this.#keeping
    if (plan.aside) throw new SandboxError('conflict', `process ${program.pid} takes its input from its owner alone`)
    activity.touch()
  }
}
