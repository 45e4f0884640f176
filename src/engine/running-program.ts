import type { WardenExit, WardenProcess } from '../channel/index.js'
import type { CellRun, RunCounts } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'
import { type Ending, type SignalName, type TerminalSize, terminalSizeSchema } from '../contract/run.js'
import { parseObject, printable } from '../policy/refusal.js'
import type { RunPlan } from '../policy/run.js'
import { type Clock, Deadline } from './deadline.js'
import type { Leftovers } from './leftovers.js'
import { MeteredOutput } from './metered-output.js'
import { outcomeOf, type Stop } from './outcome.js'
import { ProcessorDeadline } from './processor-deadline.js'
import { Remains } from './remains.js'
import { signalNumber } from './signals.js'
import { inputOver } from './unstarted-program.js'
import { countsSince, exitSince, usageOf } from './usage.js'
import { noPieces, watched } from './watched-pieces.js'

/** What a run asks of the sandbox it is in. */
export interface RunSurroundings {
  /** How many processors a run can use at once. */
  readonly processors: number
  /** What its sandbox's memory is held to now; undefined where nothing holds it. */
  readonly memoryBytes: () => number | undefined
  /** Why the channel ended under the run. */
  failure(cause: unknown): Promise<unknown>
  /** Until it is cancelled, the warden has a time to answer in. */
  watchAnswer(act: string): Deadline
  /** What the run's wall time goes by. */
  readonly clock: Clock
  /** Throws SandboxError('conflict') while the sandbox stands still. */
  checkMoving(): void
  /** Holds what the run leaves behind to its processor time. */
  readonly leftovers: Leftovers
}

export interface RunStart {
  readonly program: WardenProcess
  readonly plan: RunPlan
  /** Where it is counted; closed when it has ended. */
  readonly run: CellRun
  readonly surroundings: RunSurroundings
  readonly startedAt: number
  /** What it used of processor time before it was this program. */
  readonly spentMs?: number | undefined
  readonly signal: AbortSignal | undefined
  /** Why it was killed already, while it started. */
  readonly stop: Stop | undefined
  /** Called before the end is told to anyone, also when it is told as an abort. */
  onEnded(ending: Ending): void
}

const nothingCounted: RunCounts = {
  cpuMs: undefined,
  memoryPeakBytes: undefined,
  processesPeak: undefined,
  hits: { memory: undefined, processes: undefined },
}

/** One program from its start to its end, held to its times and its output. */
export class RunningProgram implements PlatformProcess {
  readonly pid: number
  readonly output: MeteredOutput
  readonly ended: Promise<Ending>
  readonly #start: RunStart
  readonly #deadlines: readonly { cancel(): void }[]
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
    this.#deadlines = this.#setDeadlines()
    signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (start.stop) void this.#stopWith(start.stop)
    if (signal?.aborted) this.#abort()
    this.ended = this.#finish()
    this.ended.catch(() => undefined)
  }

  /** What it says aside, of one that has an aside; not counted. */
  get aside(): AsyncIterable<Uint8Array> {
    const { program, surroundings } = this.#start
    return watched(program.aside ?? noPieces, { failure: (cause) => surroundings.failure(cause) })
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (!(bytes instanceof Uint8Array)) throw new SandboxError('invalid', 'stdin: must be written as bytes (Uint8Array)')
    const isTaken = await this.#start.program.write(bytes).catch((error: unknown) => this.#inputFailure(error))
    if (!isTaken) throw inputOver()
  }

  async endInput(): Promise<void> {
    await this.#start.program.endInput().catch((error: unknown) => this.#inputFailure(error))
  }

  ref(): void {
    this.#start.program.ref()
  }

  unref(): void {
    this.#start.program.unref()
  }

  signal(name: SignalName): Promise<void> {
    const number = signalNumber(name)
    if (number === undefined) return Promise.reject(new SandboxError('invalid', `signal: there is no signal '${printable(name)}'`))
    this.#start.program.signal(number)
    return Promise.resolve()
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- what is wrong rejects
  async resize(size: TerminalSize): Promise<void> {
    const { plan, program } = this.#start
    const parsed = parseObject(terminalSizeSchema, size, { what: 'size', objects: [] })
    if (!plan.terminal) throw new SandboxError('conflict', `process ${this.pid} has no terminal`)
    program.resize(parsed)
  }

  async kill(reason = 'killed by its owner'): Promise<void> {
    // What stands still may end only when it goes on, which nobody should wait for.
    this.#start.surroundings.checkMoving()
    await this.end(reason)
  }

  /** The same for the sandbox itself; also of what a program that has ended left behind. */
  end(reason: string): Promise<void> {
    return this.#stopWith({ kind: 'killed', reason })
  }

  /** What it printed and nobody reads does not keep its end from being told. */
  dropOutput(): void {
    this.#start.program.discardOutput()
  }

  /** Of one that has ended; undefined where all that it started went with its liner. */
  get remains(): Remains | undefined {
    const { program, run, plan } = this.#start
    return plan.liner ? undefined : new Remains(program, run)
  }

  /** Of the run as a whole so far; undefined where nothing counts it. */
  countedCpuMs(): number | undefined {
    return this.#counts().cpuMs
  }

  /** It is kept from now on: the signal that its start was called with is for its start. */
  outliveCall(): void {
    this.#start.signal?.removeEventListener('abort', this.#onAbort)
  }

  /** A write that does not fit the state of its input is the caller's fault; any other is the end of the channel. */
  async #inputFailure(error: unknown): Promise<never> {
    throw error instanceof SandboxError && error.code === 'conflict' ? error : await this.#start.surroundings.failure(error)
  }

  #exceedOutput(): void {
    const { output } = this.#start.plan
    if (output?.onLimit === 'kill') void this.#stopWith({ kind: 'output-limit', limitBytes: output.limitBytes })
  }

  #setDeadlines(): { cancel(): void }[] {
    const { plan, surroundings, startedAt } = this.#start
    const { timeMs } = plan
    const { clock } = surroundings
    const { cpuTimeMs } = plan.limits
    const stop = (by: 'wall' | 'cpu', limitMs: number) => () => void this.#stopWith({ kind: 'timed-out', by, limitMs })
    return [
      ...(timeMs === undefined ? [] : [new Deadline(timeMs - (clock.now() - startedAt), stop('wall', timeMs), clock)]),
      ...(cpuTimeMs === undefined
        ? []
        : [
            new ProcessorDeadline({
              limitMs: cpuTimeMs,
              processors: surroundings.processors,
              usedMs: () => this.#counts().cpuMs,
              onReached: stop('cpu', cpuTimeMs),
            }),
          ]),
    ]
  }

  /** A cell that cannot be asked any more has told us nothing. */
  #counts(): RunCounts {
    try {
      return countsSince(this.#start.run.usage(), this.#start.spentMs)
    } catch {
      return nothingCounted
    }
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
    this.#stop ??= { kind: 'killed', reason: 'aborted by its owner' }
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
      const exit = exitSince(await this.#start.program.exited, this.#start.spentMs)
      const wallMs = this.#start.surroundings.clock.now() - this.#start.startedAt
      // The last bytes may have gone beyond the limit and begun a kill.
      await this.output.idle
      await this.#killing
      const ending = this.#endingOf(exit, wallMs)
      this.#start.onEnded(ending)
      if (this.#aborted) throw this.#aborted.reason
      return ending
    } catch (error) {
      throw this.#aborted ? this.#aborted.reason : await this.#start.surroundings.failure(error)
    } finally {
      for (const deadline of this.#deadlines) deadline.cancel()
      this.#start.signal?.removeEventListener('abort', this.#onAbort)
      this.#leave()
    }
  }

  #leave(): void {
    const { run, plan, surroundings } = this.#start
    // Processes that the program left behind may keep it open; the cell's end closes it at the latest.
    run.close().catch(() => undefined)
    const limitMs = plan.limits.cpuTimeMs
    if (limitMs !== undefined) surroundings.leftovers.watch({ limitMs, processors: surroundings.processors, run, kill: () => void this.#killAll() })
  }

  #endingOf(exit: WardenExit, wallMs: number): Ending {
    const { plan, surroundings } = this.#start
    const { limits } = plan
    const counts = this.#counts()
    const ofSandbox = surroundings.memoryBytes()
    const memoryBytes = limits.stated.includes('memory') ? limits.memoryBytes : (ofSandbox ?? limits.memoryBytes)
    // It may have been lowered meanwhile.
    const memoryLimitBytes = ofSandbox && Math.max(memoryBytes, limits.memoryBytes)
    const usage = usageOf({ exit, counts, wallMs, outputBytes: this.output.printedBytes, memoryLimitBytes })
    const { cpuTimeMs } = limits
    const isUsedUp = cpuTimeMs !== undefined && usage.cpuUserMs + usage.cpuSystemMs >= cpuTimeMs
    const facts = { memoryKills: counts.hits.memory, memoryBytes, processorLimitMs: isUsedUp ? cpuTimeMs : undefined }
    return { outcome: outcomeOf({ exit, stop: this.#stop, ...facts }), usage, truncated: this.output.isTruncated }
  }
}
