import type { GuestUser, Probe, TemplateRoot } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess, SandboxInfo, SandboxUsage } from '../contract/platform.js'
import type { Origins, Policy } from '../contract/policy.js'
import type { UnsignedReceipt } from '../contract/receipt.js'
import type { UserName } from '../contract/spec.js'
import { checkLimits, checkRun } from '../policy/apply.js'
import { lackingLimits, userRefusal } from '../policy/choose.js'
import { planRun } from '../policy/run.js'
import { changeLimits } from '../policy/spec.js'
import { buildReceipt, type ReceiptFacts } from '../receipt/index.js'
import { Deadline } from './deadline.js'
import { eventsOf } from './events-of-run.js'
import type { FilesHost } from './file-operation.js'
import { createFilesHost } from './files-host.js'
import type { Inspector } from './inspector.js'
import { Ledger } from './ledger.js'
import { Leftovers } from './leftovers.js'
import { Lifetime } from './lifetime.js'
import { brokenCell, type OpenCell } from './open-cell.js'
import { ProcessTable } from './process-table.js'
import { readProcesses } from './process-table-usage.js'
import { isListening } from './ports-listening.js'
import { type PortsOrder, SandboxPorts } from './ports.js'
import { startProgram } from './program-starter.js'
import { unseenPrograms } from './unseen-programs.js'
import type { LayeredSandbox } from './snapshots-access.js'
import { layerAccess } from './snapshots-worker.js'

export interface SandboxMaking {
  readonly info: SandboxInfo
  readonly probe: Probe
  readonly root: TemplateRoot
  readonly open: OpenCell
  /** Undefined where nobody looks. */
  readonly inspector: Inspector | undefined
  /** All that holds its limits, runs and mounts. */
  readonly policy: Policy
  /** Who stated what when it was created. */
  readonly origins: Origins
  readonly bounds: { readonly maxRuns: number; readonly answerMs: number; readonly maxPausedMs: number }
  readonly machine: ReceiptFacts['machine'] & { readonly processors: number }
  readonly listen: PortsOrder['listen']
  /** Called once, when nothing of the sandbox is left. */
  onGone(why: SandboxError): void
}

/** One sandbox from the moment its warden answered until nothing of it is left. */
export class LiveSandbox {
  readonly #making: SandboxMaking
  /** How long it lives, whether it stands still, and what is told of it. */
  readonly life: Lifetime
  /** What of it can be reached from its host. */
  readonly ports: SandboxPorts
  readonly files: FilesHost
  readonly #ledger = new Ledger()
  readonly #leftovers = new Leftovers()
  readonly processes = new ProcessTable({ rows: () => readProcesses(this.files), activity: () => this.life.activity })
  #info: SandboxInfo
  #origins: Origins
  #openRuns = 0
  readonly #starting = new Set<Promise<unknown>>()
  /** Changes of limits follow each other: each starts from what the one before left. */
  #changing: Promise<unknown> = Promise.resolve()
  /** Why it is over, once it is: closed, expired, broken or not as demanded. */
  #over: Promise<SandboxError> | undefined
  #shutting: Promise<void> | undefined

  constructor(making: SandboxMaking) {
    this.#making = making
    this.#info = making.info
    this.#origins = making.origins
    const { info, policy, open, probe, bounds } = making
    const { pause } = probe.features
    this.life = new Lifetime({
      info,
      policy,
      cell: open.cell,
      cannotPause: pause.available ? undefined : pause.why,
      maxPausedMs: bounds.maxPausedMs,
      settled: () => Promise.allSettled(this.#starting),
      end: (why) => this.#expire(why),
    })
    this.ports = new SandboxPorts({
      id: info.id,
      listen: making.listen,
      connect: (port) => open.warden.connect(port),
      listens: (port) => isListening({ files: this.files, warden: open.warden }, port),
      checkOpen: () => this.#checkOpen(),
      onTraffic: () => this.life.activity.touch(),
    })
    const inside = { surroundings: () => this.#surroundings(), findUser: (name: UserName) => this.#findUser(name) }
    this.files = createFilesHost({ cell: open.cell, activity: this.life.activity, info: () => this.info, ...inside })
    void making.open.warden.ended.then((error) => this.failure(error ?? new Error('the channel was closed')))
  }

  get info(): SandboxInfo {
    return { ...this.#info, ...this.life.info }
  }

  /** As snapshots see it. */
  get layered(): LayeredSandbox {
    const { info } = this
    const { open, policy } = this.#making
    const planned = { spec: info.spec, clamped: info.clamped, origins: this.#origins, policy }
    return { info, planned, cell: open.cell, access: (signal) => layerAccess(this.files, signal) }
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
    this.#over ??= this.#breakDown((cell) => brokenCell(this.info.id, cell, cause))
    return this.#over
  }

  async start(request: unknown, signal: AbortSignal | undefined): Promise<PlatformProcess> {
    const { spec } = this.info
    const plan = planRun(
      request,
      spec,
      spec.limits.stated.filter((name) => this.#origins[`limits.${name}`] === 'spec'),
    )
    checkRun(plan, this.#making.policy)
    const user = this.#findUser(plan.user)
    if (this.#openRuns >= this.#making.bounds.maxRuns) {
      throw new SandboxError('busy', `sandbox ${this.info.id} has ${this.#openRuns} programs running; no more are allowed at once`)
    }
    this.#openRuns += 1
    const finished = this.life.activity.hold()
    const starting = this.processes.start(plan, () => startProgram({ plan, user, signal }, this.#surroundings()))
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

  /** All of the change or nothing of it. */
  limit(change: unknown): Promise<SandboxInfo> {
    const changing = this.#changing.then(() => this.#change(change))
    this.#changing = changing.catch(() => undefined)
    return changing
  }

  async usage(): Promise<SandboxUsage> {
    return this.#ledger.usage(await this.asked(() => this.#making.open.cell.usage()))
  }

  /** What holds, looked at now. */
  async receipt(): Promise<UnsignedReceipt> {
    const { inspector, machine, probe, policy } = this.#making
    return this.asked(async () => {
      const cell = (await inspector?.inspectCell()) ?? { expectations: [], postures: [] }
      const found = (await inspector?.inspectEverything()) ?? { inspected: { processes: 0, threads: 0, complete: false }, living: [] }
      const usage = await this.usage()
      const { runs } = this.#ledger
      const programs = inspector?.programs ?? unseenPrograms(runs)
      const stated = { info: this.info, origins: this.#origins, policies: policy.layers }
      return buildReceipt({ ...stated, issuedAt: new Date().toISOString(), machine, probe, cell, programs, runs, usage, ...found })
    })
  }

  #release(finished: () => void): void {
    this.#openRuns -= 1
    finished()
  }

  #surroundings(): Parameters<typeof startProgram>[1] {
    const { open, root, probe, inspector, machine } = this.#making
    return {
      open,
      root,
      probe,
      inspector,
      ledger: this.#ledger,
      leftovers: this.#leftovers,
      answerMs: this.#making.bounds.answerMs,
      processors: machine.processors,
      limits: () => this.info.spec.limits,
      checkOpen: () => this.#checkOpen(),
      clock: this.life.clock,
      checkMoving: () => this.life.checkMoving(),
      onEnded: (ended) => eventsOf(ended).forEach((event) => this.life.events.tell(event)),
      condemn: (error) => this.#condemn(error),
      failure: (cause) => this.failure(cause),
      watchAnswer: (act) => this.#watchAnswer(act),
    }
  }

  async #change(change: unknown): Promise<SandboxInfo> {
    await this.#checkOpen()
    const { open, probe, inspector, policy } = this.#making
    const { spec } = this.#info
    const asked = changeLimits(spec.limits, change)
    if (asked.changed.length === 0) return this.info
    const { limits: allowed, clamped } = checkLimits(change, policy)
    const { limits } = changeLimits(spec.limits, allowed)
    const lacking = lackingLimits({ ...limits, stated: asked.changed }, probe)
    if (lacking.length > 0) throw new SandboxError('unsupported', lacking.join('; '), { hint: 'glovebox doctor' })
    await this.asked(async () => {
      await open.cell.limit(limits)
      const others = this.#info.clamped.filter(({ field }) => !asked.changed.some((name) => field === `limits.${name}`))
      this.#info = { ...this.#info, spec: { ...spec, limits }, clamped: [...others, ...clamped] }
      this.#origins = { ...this.#origins, ...Object.fromEntries(asked.changed.map((name) => [`limits.${name}`, 'spec' as const])) }
      await inspector?.inspectCell()
    })
    return this.info
  }

  /** An answer of the cell's: what is not as demanded ends the sandbox, and one that is over says why. */
  async asked<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      if (error instanceof SandboxError && error.code === 'not-enforced') throw await this.#condemn(error)
      throw (await this.#over) ?? error
    }
  }

  async #checkOpen(): Promise<void> {
    if (this.#over) throw await this.#over
    this.life.checkMoving()
  }

  #condemn(error: SandboxError): Promise<SandboxError> {
    this.#over ??= this.#breakDown(() => error)
    return this.#over
  }

  /** A warden that does not answer obeys no more: the whole cell ends, which needs no answer. */
  #watchAnswer(act: string): Deadline {
    const { answerMs } = this.#making.bounds
    return new Deadline(answerMs, () => void this.failure(new Error(`the warden did not ${act} within ${answerMs} ms`)), this.life.clock)
  }

  #findUser(name: UserName): GuestUser {
    const user = this.#making.open.cell.users.find((each) => each.name === name)
    if (user) return user
    const told = this.#making.probe.users[name]
    throw new SandboxError('unsupported', userRefusal(name, told.available ? 'this cell has no such user' : told.why), { hint: 'glovebox doctor' })
  }

  #expire(why: SandboxError): void {
    if (this.#over) return
    this.#over = Promise.resolve(why)
    this.#shut().catch(() => undefined)
  }

  async #breakDown(why: (cell: OpenCell['cell']) => SandboxError): Promise<SandboxError> {
    const { cell } = this.#making.open
    // A cell that does not close keeps its place, so that close() is told and can try again.
    await Promise.resolve()
      .then(() => this.#shut())
      .catch(() => undefined)
    return why(cell)
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
    this.life.finish()
    // A warden that answers no more does not keep listeners open: its own end ends what they wait for.
    const unreachable = this.ports.close()
    this.#leftovers.end()
    this.files.workers.close()
    open.warden.close()
    await Promise.all([open.cell.close(), unreachable])
    void this.#over?.then((why) => {
      this.life.events.tell({ type: 'closed', reason: why.message })
      this.#making.onGone(why)
    })
  }
}
