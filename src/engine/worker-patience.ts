import type { WardenProcess } from '../channel/index.js'
import type { CellRun } from '../contract/driver.js'
import type { OutputEvent } from '../contract/run.js'
import { type Clock, Deadline } from './deadline.js'

/** A worker that neither says, takes nor does anything for this long is not working. */
const silentMs = 20_000
/** Where nothing counts what it does, a long copy looks the same as one that stands still. */
const uncountedSilentMs = 120_000

/** An answer within this time is no silence. */
const promptMs = 100

export interface PatienceOptions {
  readonly program: WardenProcess
  readonly run: CellRun
  readonly clock: Clock
  readonly silentMs?: number
  /** Called once, when it is over; the worker is to be killed. */
  onSilent(): void
}

/** A worker's stdio, while it is waited for. A program of the guest's may stop a worker, as any other process of its user: nobody waits for that for good. */
export class WorkerPatience implements Omit<WardenProcess, 'pid' | 'signal' | 'resize' | 'aside'> {
  readonly output: AsyncIterable<OutputEvent, undefined>
  readonly #options: PatienceOptions
  #deadline: Deadline | undefined
  #waits = 0
  #answers = 0
  #isLate = false
  #worked = 0
  #isOff = false
  #isSilent = false

  constructor(options: PatienceOptions) {
    this.#options = options
    this.output = { [Symbol.asyncIterator]: () => this.#iterate() }
  }

  get exited(): WardenProcess['exited'] {
    return this.#options.program.exited
  }

  get isSilent(): boolean {
    return this.#isSilent
  }

  get isWaitedFor(): boolean {
    return this.#waits > 0
  }

  /** From now on it may be silent for as long as it likes. */
  turnOff(): void {
    this.#isOff = true
    this.#deadline?.cancel()
    this.#deadline = undefined
  }

  kill(): Promise<void> {
    return this.#options.program.kill()
  }

  discardOutput(): void {
    this.#options.program.discardOutput()
  }

  ref(): void {
    this.#options.program.ref()
  }

  unref(): void {
    this.#options.program.unref()
  }

  write(bytes: Uint8Array): Promise<boolean> {
    return this.#waiting(this.#options.program.write(bytes))
  }

  endInput(): Promise<void> {
    return this.#waiting(this.#options.program.endInput())
  }

  #iterate(): AsyncIterator<OutputEvent, undefined> {
    const pieces = this.#options.program.output[Symbol.asyncIterator]()
    return {
      next: () => this.#waiting(pieces.next()),
      return: () => pieces.return?.() ?? Promise.resolve({ done: true, value: undefined }),
    }
  }

  async #waiting<T>(answer: Promise<T>): Promise<T> {
    this.#waits += 1
    this.#watch()
    try {
      return await answer
    } finally {
      this.#waits -= 1
      this.#answers += 1
      if (this.#isLate) this.#relax()
    }
  }

  /** Most answers come at once, and there are thousands in a second: one timer looks now and then whether there were any. */
  #watch(): void {
    if (this.#isOff || this.#isSilent || this.#deadline) return
    const before = this.#answers
    this.#deadline = new Deadline(promptMs, () => this.#look(before), this.#options.clock)
  }

  #look(before: number): void {
    this.#deadline = undefined
    if (this.#waits === 0) return
    if (this.#answers === before) this.#wait()
    else this.#watch()
  }

  /** What it has done so far is asked only now. */
  #wait(): void {
    const worked = this.#options.run.usage().cpuMs
    this.#worked = worked ?? 0
    this.#isLate = true
    const patienceMs = this.#options.silentMs ?? (worked === undefined ? uncountedSilentMs : silentMs)
    this.#deadline = new Deadline(patienceMs - promptMs, () => this.#judge(), this.#options.clock)
  }

  #relax(): void {
    this.#isLate = false
    this.#deadline?.cancel()
    this.#deadline = undefined
    if (this.#waits > 0) this.#watch()
  }

  #judge(): void {
    this.#deadline = undefined
    this.#isLate = false
    const worked = this.#options.run.usage().cpuMs
    if (worked !== undefined && worked > this.#worked) {
      this.#watch()
      return
    }
    this.#isSilent = true
    this.#options.onSilent()
  }
}
