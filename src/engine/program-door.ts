import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess, SandboxInfo } from '../contract/platform.js'
import type { PlatformBounds } from '../contract/platform-settings.js'
import type { Origins, Policy } from '../contract/policy.js'
import { checkRun } from '../policy/apply.js'
import { planAside, planLined, planRun, type RunPlan } from '../policy/run.js'
import type { AsideProcess } from './aside-process.js'
import type { Lifetime } from './lifetime.js'
import type { LiveCell } from './live-cell.js'
import type { ProcessTable } from './process-table.js'
import { startProgram } from './program-starter.js'
import type { RunningProgram } from './running-program.js'
import type { UnstartedProgram } from './unstarted-program.js'

/** What of its sandbox the door needs. */
export interface ProgramDoorOrder {
  readonly policy: Policy
  readonly bounds: Pick<PlatformBounds, 'maxRuns'>
  readonly processes: ProcessTable
  readonly life: Pick<Lifetime, 'activity' | 'stillFor'>
  /** As they are now. */
  readonly info: () => SandboxInfo
  readonly origins: () => Origins
  /** Throws SandboxError('conflict') while there is none. */
  readonly cell: () => LiveCell
}

type Launch = () => Promise<RunningProgram | UnstartedProgram>

/** The one way for programs into a sandbox: what each must pass, and how many have passed and not ended. */
export class ProgramDoor {
  readonly #order: ProgramDoorOrder
  #openRuns = 0
  readonly #starting = new Set<Promise<unknown>>()

  constructor(order: ProgramDoorOrder) {
    this.#order = order
  }

  /** Settles when nothing is on its way that is now. */
  get settled(): Promise<unknown> {
    return Promise.allSettled(this.#starting)
  }

  /** A run as it would be held, checked; nothing is started. */
  plan(request: unknown): RunPlan {
    const { info, policy } = this.#order
    const plan = planRun(request, info().spec, this.#asked())
    checkRun(plan, policy)
    return plan
  }

  start(request: unknown, signal: AbortSignal | undefined): Promise<PlatformProcess> {
    const { processes, info } = this.#order
    return this.#pass(planRun(request, info().spec, this.#asked()), signal, (plan, launch) => processes.start(plan, launch))
  }

  /** The same in a liner. */
  startLined(request: unknown, signal: AbortSignal | undefined): Promise<PlatformProcess> {
    const { processes, info } = this.#order
    return this.#pass(planLined(request, info().spec, this.#asked()), signal, (plan, launch) => processes.start(plan, launch))
  }

  /** A kept program with a third stream, whose streams and input are the caller's alone. */
  startAside(request: unknown, signal: AbortSignal | undefined): Promise<AsideProcess> {
    const { processes, info } = this.#order
    return this.#pass(planAside(request, info().spec, this.#asked()), signal, (plan, launch) => processes.startAside(plan, launch))
  }

  async #pass<Program extends Pick<PlatformProcess, 'ended'>>(
    plan: RunPlan,
    signal: AbortSignal | undefined,
    begin: (plan: RunPlan, launch: Launch) => Promise<Program>,
  ): Promise<Program> {
    const { policy, bounds, life, info } = this.#order
    checkRun(plan, policy)
    for (let still = life.stillFor; still; still = life.stillFor) await still
    const cell = this.#order.cell()
    const user = cell.findUser(plan.user)
    if (this.#openRuns >= bounds.maxRuns) {
      throw new SandboxError('busy', `sandbox ${info().id} has ${this.#openRuns} programs running; no more are allowed at once`)
    }
    this.#openRuns += 1
    const finished = life.activity.hold()
    const starting = begin(plan, async () => cell.track(await startProgram({ plan, user, signal }, cell.surroundings)))
    this.#starting.add(starting)
    try {
      const program = await starting
      // A run in progress is of use to someone; a process that is kept only while it works.
      if (plan.kept) finished()
      void program.ended.catch(() => undefined).then(() => this.#release(finished))
      return program
    } catch (error) {
      this.#release(finished)
      throw error
    } finally {
      this.#starting.delete(starting)
    }
  }

  /** The limits that were asked for when it was created. */
  #asked(): ReturnType<ProgramDoorOrder['info']>['spec']['limits']['stated'] {
    const origins = this.#order.origins()
    return this.#order.info().spec.limits.stated.filter((name) => origins[`limits.${name}`] === 'spec')
  }

  #release(finished: () => void): void {
    this.#openRuns -= 1
    finished()
  }
}
