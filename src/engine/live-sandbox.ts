import { SandboxError } from '../contract/errors.js'
import type { Cell } from '../contract/driver.js'
import type { PlatformProcess, SandboxInfo, SandboxUsage } from '../contract/platform.js'
import type { Origins } from '../contract/policy.js'
import type { UnsignedReceipt } from '../contract/receipt.js'
import type { RunRequest } from '../contract/run.js'
import type { RunPlan } from '../policy/run.js'
import type { AsideProcess } from './aside-process.js'
import { CellHold } from './cell-hold.js'
import type { FilesHost } from './file-operation.js'
import { Ledger } from './ledger.js'
import { judgeChange } from './limit-change.js'
import { Lifetime } from './lifetime.js'
import type { MadeHome } from './live-cell.js'
import { brokenCell } from './open-cell.js'
import { noWayOut, type WayOut } from './network.js'
import { ProcessTable } from './process-table.js'
import { readProcesses } from './process-table-usage.js'
import { isListening } from './ports-listening.js'
import { SandboxPorts } from './ports.js'
import { ProgramDoor } from './program-door.js'
import { receiptNow, type ReceiptStory, type ReceiptWish } from './receipt-now.js'
import type { SandboxMaking } from './sandbox-making.js'
import type { LayeredSandbox, ReadableSandbox } from './snapshots-access.js'
import type { ZygoteOrder } from './zygote.js'

/** One sandbox from the moment its warden answered until nothing of it is left. */
export class LiveSandbox {
  readonly #making: SandboxMaking
  /** How long it lives, whether it stands still, and what is told of it. */
  readonly life: Lifetime
  /** What of it can be reached from its host. */
  readonly ports: SandboxPorts
  readonly #hold: CellHold
  readonly #ledger = new Ledger()
  readonly processes = new ProcessTable({
    rows: () => readProcesses(this.files),
    activity: () => this.life.activity,
    mostRingBytes: () => this.#making.bounds.maxRingBytes,
  })
  #info: SandboxInfo
  #origins: Origins
  readonly #door: ProgramDoor
  /** Changes of limits follow each other: each starts from what the one before left. */
  #changing: Promise<unknown> = Promise.resolve()
  /** Why it is over, once it is: closed, expired, broken or not as demanded. */
  #over: Promise<SandboxError> | undefined
  #shutting: Promise<void> | undefined

  constructor(making: SandboxMaking) {
    this.#making = making
    this.#info = making.info
    this.#origins = making.origins
    const { info, home, listen } = making
    this.life = this.#createLife()
    this.#hold = this.#createHold(home)
    home.network?.tell({ activity: this.life.activity, events: this.life.events, onMoved: async () => this.#hold.current?.dropReady() })
    this.#door = new ProgramDoor({
      policy: making.policy,
      bounds: making.bounds,
      processes: this.processes,
      life: this.life,
      info: () => this.info,
      origins: () => this.#origins,
      cell: () => this.#hold.here,
    })
    this.ports = new SandboxPorts({
      id: info.id,
      listen,
      connect: async (port) => this.#hold.here.made.open.warden.connect(port),
      listens: async (port, signal) => isListening({ files: this.files, warden: this.#hold.here.made.open.warden, network: home.network, signal }, port),
      checkOpen: () => this.#checkOpen(),
      onTraffic: () => this.life.activity.touch(),
    })
  }

  /** Throws SandboxError('conflict') when it was created without one. */
  get network(): WayOut {
    return this.#making.home.network ?? noWayOut(this.info.id)
  }

  /** For the engine itself: what waited for somebody is theirs from now on, and is told as if it came about now. */
  beginAnew(info: SandboxInfo, origins: Origins): void {
    this.#info = info
    this.#origins = origins
    this.life.beginAnew(info)
  }

  /** Throws SandboxError('conflict') while it has no cell. */
  get files(): FilesHost {
    return this.#hold.here.files
  }

  get info(): SandboxInfo {
    return { ...this.#info, ...this.life.info, ...this.#making.whose }
  }

  /** As snapshots see it; there is nothing of it to be seen while it has no cell. */
  get hold(): ReadableSandbox & { readonly layered: LayeredSandbox } {
    return this.#hold
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
    return this.#door.start(request, signal)
  }

  /** For the engine itself: a run in a liner, which leaves nothing behind for the next. */
  async startLined(request: unknown, signal: AbortSignal | undefined): Promise<PlatformProcess> {
    return this.#door.startLined(request, signal)
  }

  /** An interpreter that runs in liners are forked from, started unless it is there. */
  async ensureZygote(order: ZygoteOrder, signal?: AbortSignal): Promise<void> {
    await this.#checkOpen()
    const { zygote } = this.#hold.here
    const files = this.#making.zygotes?.()
    if (!zygote || !files) throw new SandboxError('unsupported', 'this cell gives no liners to its runs', { hint: 'glovebox doctor' })
    await zygote.ensure(order, await files, signal)
  }

  /** What a run would be held to, checked as one that is started. */
  plan(request: RunRequest): RunPlan {
    return this.#door.plan(request)
  }

  /** For the engine itself: a kept program with a third stream. */
  async startAside(request: RunRequest, signal: AbortSignal | undefined): Promise<AsideProcess> {
    return this.#door.startAside(request, signal)
  }

  /** All of the change or nothing of it. */
  limit(change: unknown): Promise<SandboxInfo> {
    const changing = this.#changing.then(() => this.#change(change))
    this.#changing = changing.catch(() => undefined)
    return changing
  }

  /** Other rules for its way out. */
  async changeNetwork(change: unknown): Promise<SandboxInfo> {
    if (this.#over) throw await this.#over
    const { network, clamped } = this.network.change(change, this.#making.policy)
    const others = this.#info.clamped.filter(({ field }) => !field.startsWith('network'))
    this.#info = { ...this.#info, spec: { ...this.#info.spec, network }, clamped: [...others, ...clamped] }
    this.#origins = { ...this.#origins, network: 'spec' }
    await this.#hold.current?.dropReady()
    return this.info
  }

  async usage(): Promise<SandboxUsage> {
    const cell = this.#hold.current?.made.open.cell
    return this.#ledger.usage(cell && (await this.asked(() => cell.usage())))
  }

  /** What holds, looked at now. Throws SandboxError('conflict') while there is nothing to look at. */
  async receipt({ retell, isOfEndedLiner = false }: ReceiptWish = {}): Promise<UnsignedReceipt> {
    const { machine, policy, made } = this.#making
    const story = async (): Promise<ReceiptStory> => ({ usage: await this.usage(), runs: this.#ledger.runs, info: this.info, origins: this.#origins, made })
    return this.asked(async () => receiptNow({ cell: this.#hold.here, machine, policy, story, retell, isOfEndedLiner }))
  }

  #createLife(): Lifetime {
    const { info, policy, bounds, home } = this.#making
    const { pause } = home.probe.features
    const cell = (): Cell => this.#hold.here.made.open.cell
    return new Lifetime({
      info,
      policy,
      memory: { stop: () => this.#hold.here.standStill(), goOn: () => cell().resume() },
      files: { stop: () => this.#hold.putAway(), goOn: () => this.#hold.bringBack() },
      // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- asked for the first time when there is no hold yet
      worked: () => (this.#hold ? this.#hold.current?.made : home)?.open.cell.worked(),
      cannotPause: pause.available ? undefined : pause.why,
      maxPausedMs: bounds.maxPausedMs,
      // A start that fails with its cell waits for the sandbox's end, which waits for whoever pauses it.
      settled: () => this.#hold.unlessOver(this.#door.settled),
      end: (why) => this.#expire(why),
    })
  }

  #createHold(first: MadeHome): CellHold {
    const { bounds, machine, keepAside } = this.#making
    return new CellHold({
      first,
      life: this.life,
      ledger: this.#ledger,
      bounds,
      processors: machine.processors,
      info: () => this.info,
      checkOpen: () => this.#checkOpen(),
      failure: (cause) => this.failure(cause),
      condemn: (error) => this.#condemn(error),
      planned: () => ({ spec: this.#info.spec, clamped: this.#info.clamped, origins: this.#origins, policy: this.#making.policy }),
      remake: (signal) => this.#remake(signal),
      keepAside,
    })
  }

  /** By the same driver, with the limits that hold now. */
  async #remake(signal: AbortSignal): Promise<MadeHome> {
    const { spec, clamped, driver } = this.#info
    const planned = { spec: { ...spec, driver }, clamped, origins: this.#origins, policy: this.#making.policy }
    const { home, limits, unenforced } = await this.#making.remake(planned, signal)
    this.#info = { ...this.#info, spec: { ...spec, limits }, unenforced }
    this.#making.home.network?.rejoin(home.open.warden)
    return home
  }

  async #change(change: unknown): Promise<SandboxInfo> {
    await this.#checkOpen()
    const cell = this.#hold.here
    const { open, probe, inspector } = cell.made
    const { spec } = this.#info
    const asked = judgeChange(change, { limits: spec.limits, policy: this.#making.policy, probe })
    if (asked === undefined) return this.info
    const { limits, clamped, changed } = asked
    await this.asked(async () => {
      await open.cell.limit(limits)
      const others = this.#info.clamped.filter(({ field }) => !changed.some((name) => field === `limits.${name}`))
      this.#info = { ...this.#info, spec: { ...spec, limits }, clamped: [...others, ...clamped] }
      this.#origins = { ...this.#origins, ...Object.fromEntries(changed.map((name) => [`limits.${name}`, 'spec' as const])) }
      // What was made ready under other limits may take up a place that is not there any more.
      await cell.dropReady()
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

  #expire(why: SandboxError): void {
    if (this.#over) return
    this.#over = Promise.resolve(why)
    this.#shut().catch(() => undefined)
  }

  async #breakDown(why: (cell: Cell | undefined) => SandboxError): Promise<SandboxError> {
    const cell = this.#hold.current?.made.open.cell
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
    this.life.finish()
    this.#hold.callOff(new SandboxError('closed', `sandbox ${this.info.id} is over`))
    // A warden that answers no more does not keep listeners open: its own end ends what they wait for.
    const unreachable = this.ports.close()
    await Promise.all([this.#hold.close(() => this.life.acts), unreachable, this.#making.home.network?.close()])
    void this.#over?.then((why) => {
      this.life.events.tell({ type: 'closed', code: why.code, reason: why.message })
      this.#making.onGone(why)
    })
  }
}
