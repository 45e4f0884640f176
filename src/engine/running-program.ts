import type { WardenExit, WardenProcess } from '../channel/index.js'
import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'
import type { Ending, SignalName } from '../contract/run.js'
import { printable } from '../policy/refusal.js'
import type { RunPlan } from '../policy/run.js'
import { Deadline } from './deadline.js'
import { MeteredOutput } from './metered-output.js'
import { outcomeOf, type Stop } from './outcome.js'
import { killSignal, signalNumber } from './signals.js'
import { nothingUsed, toMicroseconds } from './usage.js'

/** What a run asks of the sandbox it is in. */
export interface RunSurroundings {
  readonly memoryBytes: number
  /** How many processes the kernel has killed in this cell for want of memory; undefined where nothing counts them. */
  oomKills(): Promise<number | undefined>
  /** Why the channel ended under the run. */
  failure(cause: unknown): Promise<unknown>
  /** Until it is cancelled, the warden has a time to answer in. */
  watchAnswer(act: string): Deadline
}

export interface RunStart {
  readonly program: WardenProcess
  readonly plan: RunPlan
  readonly surroundings: RunSurroundings
  readonly startedAt: number
  readonly oomKillsBefore: number | undefined
  readonly signal: AbortSignal | undefined
}

/** One program from its start to its end, held to its time and its output. */
export class RunningProgram implements PlatformProcess {
  readonly pid: number
  readonly output: MeteredOutput
  readonly ended: Promise<Ending>
  readonly #start: RunStart
  readonly #deadline: Deadline | undefined
  readonly #onAbort = (): void => this.#abort()
  #stop: Stop | undefined
  #aborted: { readonly reason: unknown } | undefined
  /** Settles when no kill is under way: an ending is told when nothing of a killed run is left. */
  #killing: Promise<unknown> = Promise.resolve()

  constructor(start: RunStart) {
    const { program, plan, surroundings, signal } = start
    this.#start = start
    this.pid = program.pid
    this.output = new MeteredOutput({
      source: program.output,
      limitBytes: plan.output?.limitBytes,
      onExceeded: () => this.#exceedOutput(),
      failure: (cause) => surroundings.failure(cause),
    })
    const { timeMs } = plan
    if (timeMs !== undefined) this.#deadline = new Deadline(timeMs, () => void this.#stopWith({ kind: 'timed-out', by: 'wall', limitMs: timeMs }))
    signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (signal?.aborted) this.#abort()
    this.ended = this.#finish()
    this.ended.catch(() => undefined)
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (!(bytes instanceof Uint8Array)) throw new SandboxError('invalid', 'stdin: must be written as bytes (Uint8Array)')
    await this.#start.program.write(bytes).catch((error: unknown) => this.#inputFailure(error))
  }

  async endInput(): Promise<void> {
    await this.#start.program.endInput().catch((error: unknown) => this.#inputFailure(error))
  }

  signal(name: SignalName): Promise<void> {
    const number = signalNumber(name)
    if (number === undefined) return Promise.reject(new SandboxError('invalid', `signal: there is no signal '${printable(name)}'`))
    this.#start.program.signal(number)
    return Promise.resolve()
  }

  async kill(reason = 'killed by its owner'): Promise<void> {
    await this.#stopWith({ kind: 'killed', reason })
  }

  /** A write that does not fit the state of its input is the caller's fault; any other is the end of the channel. */
  async #inputFailure(error: unknown): Promise<never> {
    throw error instanceof SandboxError && error.code === 'conflict' ? error : await this.#start.surroundings.failure(error)
  }

  #exceedOutput(): void {
    const { output } = this.#start.plan
    if (output?.onLimit === 'kill') void this.#stopWith({ kind: 'output-limit', limitBytes: output.limitBytes })
  }

  #stopWith(stop: Stop): Promise<void> {
    // Beyond the output limit something was dropped whatever else happened, so that reason outranks an earlier one.
    if (stop.kind === 'output-limit') this.#stop = stop
    this.#stop ??= stop
    const killed = this.#killAll()
    this.#killing = Promise.all([this.#killing, killed])
    return killed
  }

  #abort(): void {
    const { program, signal } = this.#start
    this.#aborted = { reason: signal?.reason }
    this.#killing = Promise.all([this.#killing, this.#killAll()])
    this.output.cut({ reason: signal?.reason, after: this.#killing })
    program.discardOutput()
  }

  async #killAll(): Promise<void> {
    const { program, surroundings } = this.#start
    const watch = surroundings.watchAnswer('kill a run')
    try {
      await program.kill()
    } catch (error) {
      // The channel is over and with it the cell; once it is closed nothing of the run is left.
      await surroundings.failure(error)
    } finally {
      watch.cancel()
    }
  }

  async #finish(): Promise<Ending> {
    try {
      const exit = await this.#start.program.exited
      const wallMs = performance.now() - this.#start.startedAt
      // The last bytes may have gone beyond the limit and begun a kill.
      await this.output.idle
      await this.#killing
      if (this.#aborted) throw this.#aborted.reason
      return await this.#endingOf(exit, wallMs)
    } catch (error) {
      throw this.#aborted ? this.#aborted.reason : await this.#start.surroundings.failure(error)
    } finally {
      this.#deadline?.cancel()
      this.#start.signal?.removeEventListener('abort', this.#onAbort)
    }
  }

  async #endingOf(exit: WardenExit, wallMs: number): Promise<Ending> {
    const { surroundings, oomKillsBefore } = this.#start
    const mayBeMemory = this.#stop === undefined && exit.kind === 'signaled' && exit.code === killSignal && oomKillsBefore !== undefined
    const oomKills = mayBeMemory ? await surroundings.oomKills() : undefined
    const ranOutOfMemory = oomKills !== undefined && oomKills > (oomKillsBefore ?? oomKills)
    const { cpuUserMs, cpuSystemMs, memoryPeakBytes } = exit
    return {
      outcome: outcomeOf({ exit, stop: this.#stop, ranOutOfMemory, memoryBytes: surroundings.memoryBytes }),
      usage: toMicroseconds({ ...nothingUsed, wallMs, cpuUserMs, cpuSystemMs, memoryPeakBytes, outputBytes: this.output.printedBytes }),
      truncated: this.output.isTruncated,
    }
  }
}
