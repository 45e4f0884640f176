import type { StartResult } from '../channel/index.js'
import type { GuestUser, Probe, TemplateRoot } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess, SandboxInfo } from '../contract/platform.js'
import type { Spec, UserName } from '../contract/spec.js'
import { userRefusal } from '../policy/choose.js'
import { planRun, type RunPlan } from '../policy/run.js'
import { Deadline } from './deadline.js'
import { brokenCell, type OpenCell } from './open-cell.js'
import { RunningProgram } from './running-program.js'
import { notStarted, startError } from './start-failure.js'
import { startRequest } from './start-request.js'
import { UnstartedProgram } from './unstarted-program.js'

export interface SandboxMaking {
  readonly id: string
  readonly spec: Spec
  readonly probe: Probe
  readonly root: TemplateRoot
  readonly unenforced: SandboxInfo['unenforced']
  readonly open: OpenCell
  readonly bounds: { readonly maxRuns: number; readonly answerMs: number }
  /** Called once, when nothing of the sandbox is left. */
  onGone(why: SandboxError): void
}

/** One sandbox from the moment its warden answered until nothing of it is left. */
export class LiveSandbox {
  readonly info: SandboxInfo
  readonly #making: SandboxMaking
  readonly #expiry: Deadline
  #openRuns = 0
  /** Why it is over, once it is: closed, expired or broken. */
  #over: Promise<SandboxError> | undefined
  #shutting: Promise<void> | undefined

  constructor(making: SandboxMaking) {
    const { id, spec, probe, unenforced, open } = making
    const now = Date.now()
    this.#making = making
    this.info = {
      id,
      state: 'running',
      spec,
      driver: probe.driver,
      tier: probe.tier,
      createdAt: new Date(now).toISOString(),
      expiresAt: new Date(now + spec.lifetimeMs).toISOString(),
      unenforced,
    }
    this.#expiry = new Deadline(spec.lifetimeMs, () => this.#expire())
    void open.warden.ended.then((error) => this.failure(error ?? new Error('the channel was closed')))
  }

  /** Why nothing can be started in it any more; undefined while it runs. */
  get over(): Promise<SandboxError> | undefined {
    return this.#over
  }

  /** Idempotent. Resolves when nothing is left; a sandbox that was over for another reason stays so. */
  async close(): Promise<void> {
    this.#over ??= Promise.resolve(new SandboxError('closed', `sandbox ${this.info.id} was closed`))
    await this.#shut()
  }

  /** Why the channel is over: what ended the sandbox, or, when nothing did, the cell itself. */
  failure(cause: unknown): Promise<SandboxError> {
    this.#over ??= this.#breakDown(cause)
    return this.#over
  }

  async start(request: unknown, signal: AbortSignal | undefined): Promise<PlatformProcess> {
    const plan = planRun(request, this.info.spec)
    const user = this.#findUser(plan.user)
    if (this.#openRuns >= this.#making.bounds.maxRuns) {
      throw new SandboxError('busy', `sandbox ${this.info.id} has ${this.#openRuns} programs running; no more are allowed at once`)
    }
    this.#openRuns += 1
    try {
      const program = await this.#launch(plan, user, signal)
      void program.ended.catch(() => undefined).then(() => this.#release())
      return program
    } catch (error) {
      this.#release()
      throw error
    }
  }

  #release(): void {
    this.#openRuns -= 1
  }

  async #launch(plan: RunPlan, user: GuestUser, signal: AbortSignal | undefined): Promise<PlatformProcess> {
    const { open, root, probe } = this.#making
    const { limits } = this.info.spec
    const request = startRequest({ plan, user, cell: open.cell, root, limits, probe })
    const oomKillsBefore = await this.#oomKills()
    signal?.throwIfAborted()
    if (this.#over) throw await this.#over
    const startedAt = performance.now()
    const result = await this.#startProgram(request)
    if (!result.started) {
      if (result.stage !== 'exec') throw startError(result, request.cwd)
      return new UnstartedProgram(notStarted(result, request.argv[0] ?? ''), performance.now() - startedAt)
    }
    const surroundings = {
      memoryBytes: limits.memoryBytes,
      oomKills: () => this.#oomKills(),
      failure: (cause: unknown) => this.failure(cause),
      watchAnswer: (act: string) => this.#watchAnswer(act),
    }
    const program = new RunningProgram({ program: result.process, plan, surroundings, startedAt, oomKillsBefore, signal })
    // Aborted while it started: it is over before anyone gets it.
    if (signal?.aborted) await program.ended
    return program
  }

  async #startProgram(request: Parameters<OpenCell['warden']['start']>[0]): Promise<StartResult> {
    const watch = this.#watchAnswer('start a program')
    try {
      return await this.#making.open.warden.start(request)
    } catch (error) {
      if (error instanceof SandboxError && error.code === 'invalid') throw error
      throw await this.failure(error)
    } finally {
      watch.cancel()
    }
  }

  /** A warden that does not answer obeys no more: the whole cell ends, which needs no answer. */
  #watchAnswer(act: string): Deadline {
    const { answerMs } = this.#making.bounds
    return new Deadline(answerMs, () => void this.failure(new Error(`the warden did not ${act} within ${answerMs} ms`)))
  }

  #findUser(name: UserName): GuestUser {
    const user = this.#making.open.cell.users.find((each) => each.name === name)
    if (user) return user
    const told = this.#making.probe.users[name]
    throw new SandboxError('unsupported', userRefusal(name, told.available ? 'this cell has no such user' : told.why), { hint: 'glovebox doctor' })
  }

  async #oomKills(): Promise<number | undefined> {
    try {
      return (await this.#making.open.cell.usage()).hits.memory
    } catch {
      // A cell that cannot be asked any more has not told us of a kill.
      return undefined
    }
  }

  #expire(): void {
    if (this.#over) return
    const { id, expiresAt } = this.info
    this.#over = Promise.resolve(new SandboxError('expired', `sandbox ${id} expired at ${expiresAt}`))
    this.#shut().catch(() => undefined)
  }

  async #breakDown(cause: unknown): Promise<SandboxError> {
    const { cell } = this.#making.open
    // A cell that does not close keeps its place, so that close() is told and can try again.
    await Promise.resolve()
      .then(() => this.#shut())
      .catch(() => undefined)
    return brokenCell(this.info.id, cell, cause)
  }

  #shut(): Promise<void> {
    this.#shutting ??= this.#clear().catch((error: unknown) => {
      this.#shutting = undefined
      throw error
    })
    return this.#shutting
  }

  async #clear(): Promise<void> {
    const { open } = this.#making
    this.#expiry.cancel()
    open.warden.close()
    await open.cell.close()
    void this.#over?.then((why) => this.#making.onGone(why))
  }
}
