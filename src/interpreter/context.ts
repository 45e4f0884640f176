/**
 * One context: an interpreter with its memory, and the executions that wait for it.
 *
 * starting ──ready──▶ idle ⇄ busy ──its interpreter ends──▶ ended ──the next execution, or restart──▶ starting
 * An execution that is to end is interrupted, and its interpreter killed when that did not help within a grace.
 */
import type { ContextInfo, ContextState, Language } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import type { Outcome } from '../contract/run.js'
import type { Timers } from './event-order.js'
import { type Conclusion, Execution, type ExecutionRequest, type StopReason } from './execution.js'
import { type Executed, type ExecutionOrder, Kernel, type KernelProcess, mostResultBytes } from './kernel.js'
import { outcomeInWords } from './outcome-words.js'
import { type Runtime, speaks } from './runtime.js'

export interface ContextOrder {
  readonly about: Pick<ContextInfo, 'id' | 'language' | 'name' | 'cwd' | 'isDefault'>
  readonly runtime: Runtime
  readonly timers: Timers
  /** Starts its interpreter. Throws SandboxError when that cannot be. */
  readonly start: () => Promise<KernelProcess>
  /** The sandbox is in use until what this returns is called. */
  readonly hold: () => () => void
}

/** How long an interrupt may take until the interpreter is killed. */
const graceMs = 2000
/** How long an interpreter may take to begin. */
const startMs = 30_000
const mostQueued = 1000

export class Context {
  readonly #order: ContextOrder
  readonly #createdAt = new Date().toISOString()
  readonly #queue: Execution[] = []
  #kernel: Promise<Kernel> | undefined
  /** The same once it is there. */
  #there: Kernel | undefined
  #known: { readonly version: string; readonly pid: number } = { version: '', pid: 0 }
  #current: Execution | undefined
  #isWorking = false
  #executions = 0
  /** Of the interpreter that there is. */
  #number = 0
  #starts = 0
  #ended: Outcome | undefined
  #isRemoved = false
  #lateBytes = 0
  /** Languages for which the interpreter was given what they need. */
  readonly #loaded = new Set<Language>()

  constructor(order: ContextOrder) {
    this.#order = order
  }

  get info(): ContextInfo {
    const { version, pid } = this.#known
    return {
      ...this.#order.about,
      version,
      pid,
      state: this.#state,
      executions: this.#executions,
      queued: this.#queue.length,
      createdAt: this.#createdAt,
      restarts: Math.max(0, this.#starts - 1),
      droppedBytes: this.#lateBytes + (this.#there?.lateBytes ?? 0),
      ...(this.#ended && { ended: this.#ended }),
    }
  }

  get runtime(): Runtime {
    return this.#order.runtime
  }

  /** Resolves when its interpreter is there; to that one's end. */
  async open(): Promise<Pick<Kernel, 'ended'>> {
    const { ended } = await this.#open()
    return { ended }
  }

  execute(request: ExecutionRequest): Execution {
    this.#checkThere()
    if (this.#queue.length >= mostQueued)
      throw new SandboxError('busy', `${mostQueued} executions wait in context ${this.#order.about.id}; no more are allowed`)
    const execution = new Execution(request, { context: this.#order.about.id, onStop: (stopped, reason) => this.#stop(stopped, reason) })
    this.#queue.push(execution)
    void this.#work()
    return execution
  }

  /** What runs and waits in it ends as `crashed`. Resolves when another interpreter is there. */
  async restart(): Promise<void> {
    await this.#endAll('its context was restarted')
    this.#checkThere()
    await this.#open()
  }

  /** Resolves when nothing of it is left. */
  async remove(): Promise<void> {
    this.#isRemoved = true
    await this.#endAll('its context was removed')
  }

  #checkThere(): void {
    if (this.#isRemoved) throw new SandboxError('not-found', `there is no context ${this.#order.about.id}`)
  }

  get #state(): ContextState {
    if (this.#current || this.#queue.length > 0) return 'busy'
    return this.#kernel ? 'idle' : 'ended'
  }

  async #endAll(reason: string): Promise<void> {
    const outcome: Outcome = { kind: 'killed', reason }
    for (const execution of this.#queue.splice(0)) execution.conclude({ status: 'crashed', number: 0, outcome, isStateKept: false })
    const kernel = await this.#kernel?.catch(() => undefined)
    await kernel?.kill(reason)
    await kernel?.ended
  }

  #open(): Promise<Kernel> {
    this.#kernel ??= this.#start()
    return this.#kernel
  }

  #start(): Promise<Kernel> {
    const starting = this.#startKernel()
    const forget = (): void => {
      if (this.#kernel === starting) this.#kernel = undefined
    }
    starting.then(
      (kernel) => {
        this.#there = kernel
        const onEnded = (outcome?: Outcome): void => {
          forget()
          if (outcome) this.#ended = outcome
          this.#lateBytes += kernel.lateBytes
          this.#there = undefined
        }
        kernel.ended.then(onEnded, () => onEnded())
      },
      () => forget(),
    )
    return starting
  }

  async #startKernel(): Promise<Kernel> {
    const { start, timers, runtime } = this.#order
    const [process, load] = await Promise.all([start(), runtime.load()])
    const kernel = new Kernel(process, { load, timers })
    const patience = timers.after(startMs, () => void kernel.kill(`its interpreter did not begin within ${startMs / 1000} s`))
    const ready = await Promise.race([kernel.ready, kernel.ended.then((outcome) => ({ outcome }))]).finally(() => patience.cancel())
    if ('outcome' in ready) throw new KernelNotStarted(ready.outcome)
    this.#known = { version: ready.version, pid: kernel.pid }
    this.#starts += 1
    this.#number = 0
    this.#ended = undefined
    this.#loaded.clear()
    // An interpreter that waits keeps nobody's process alive.
    kernel.unref()
    return kernel
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    const letGo = this.#order.hold()
    try {
      for (let next = this.#queue.shift(); next; next = this.#queue.shift()) {
        this.#current = next
        await this.#run(next).catch((error: unknown) => next.fail(error))
      }
    } finally {
      this.#current = undefined
      this.#isWorking = false
      letGo()
    }
  }

  async #run(execution: Execution): Promise<void> {
    const { watch, timeoutMs } = execution.request
    const { timers } = this.#order
    const isAnew = this.#kernel === undefined && this.#starts > 0
    const [opened, watched] = await Promise.all([this.#opened(), watch?.begin()])
    if (execution.isOver) return
    if ('outcome' in opened) {
      execution.conclude({ status: 'crashed', number: 0, outcome: opened.outcome, isStateKept: false })
      return
    }
    const { kernel } = opened
    const order = await this.#orderFor(execution)
    await kernel.signalled
    if (execution.stop) {
      // It was to end before it began: an interrupt would find nothing to interrupt.
      execution.conclude({ status: execution.stop, number: 0, isStateKept: !isAnew })
      return
    }
    this.#executions += 1
    const number = (this.#number += 1)
    const startedAt = timers.now()
    const deadline = timers.after(timeoutMs, () => execution.stopWith('timed-out'))
    kernel.ref()
    try {
      execution.runIn(kernel)
      const executed = await kernel.execute(order)
      deadline.cancel()
      const wallMs = timers.now() - startedAt
      execution.conclude({ ...conclusionOf(executed, execution.stop, number), ...(isAnew && { isStateKept: false }), wallMs, ...(await watched?.end()) })
    } finally {
      deadline.cancel()
      kernel.unref()
    }
  }

  async #opened(): Promise<{ readonly kernel: Kernel } | { readonly outcome: Outcome }> {
    try {
      return { kernel: await this.#open() }
    } catch (error) {
      if (!(error instanceof KernelNotStarted)) throw error
      return { outcome: error.outcome }
    }
  }

  async #orderFor(execution: Execution): Promise<ExecutionOrder> {
    const { source, env, language, takesInput } = execution.request
    const { options, load } = speaks(this.#order.runtime, language) ?? { options: {} }
    const isLoaded = load === undefined || this.#loaded.has(language)
    this.#loaded.add(language)
    return {
      token: execution.token,
      source,
      env,
      options: { ...options, 'result-bytes': String(mostResultBytes), ...(takesInput && { input: 'asked' }) },
      load: isLoaded ? undefined : await load(),
      queue: execution.events,
      onAsk: takesInput ? () => execution.ask() : undefined,
    }
  }

  #stop(execution: Execution, reason: StopReason): void {
    const at = this.#queue.indexOf(execution)
    if (at !== -1) {
      this.#queue.splice(at, 1)
      execution.conclude({ status: reason, number: 0, isStateKept: this.#starts === 0 || this.#kernel !== undefined })
      return
    }
    void this.#interrupt(execution, reason).catch((error: unknown) => execution.fail(error))
  }

  async #interrupt(execution: Execution, reason: StopReason): Promise<void> {
    // One that has not begun is ended by #run, and where there is no interpreter, none is started to be interrupted.
    if (!execution.isRunning) return
    const kernel = await this.#kernel?.catch(() => undefined)
    if (execution.isOver || !kernel) return
    await kernel.interrupt()
    const words = reason === 'timed-out' ? 'its time was over' : 'it was interrupted'
    const grace = this.#order.timers.after(graceMs, () => void kernel.kill(`${words}, and it did not end within ${graceMs / 1000} s`))
    await execution.ended.catch(() => undefined)
    grace.cancel()
  }
}

/** An interpreter that ended before it began. */
class KernelNotStarted extends SandboxError {
  readonly outcome: Outcome

  constructor(outcome: Outcome) {
    super('conflict', `the interpreter did not start: ${outcomeInWords(outcome)}`)
    this.outcome = outcome
  }
}

/** Once it was to end, what it made of that is its own affair: that it had to be told is a fact. */
function conclusionOf(executed: Executed, stop: StopReason | undefined, number: number): Conclusion {
  if ('ended' in executed) return { status: stop ?? 'crashed', number, outcome: executed.ended, isStateKept: false }
  const { status, code, error } = executed.done
  return { status: stop ?? status, number, ...(code !== undefined && { code }), ...(error && { error }), isStateKept: true }
}
