import { checkCallOptions } from '../contract/call-options.js'
import type { Probe } from '../contract/driver.js'
import type { PlatformEvents } from '../contract/events.js'
import { SandboxError } from '../contract/errors.js'
import type { LimitsInput } from '../contract/limits.js'
import type { CreationOptions } from '../contract/platform-network.js'
import type { CallOptions, Platform, PlatformProcess, SandboxFilter, SandboxInfo, SandboxUsage } from '../contract/platform.js'
import type { PlatformBounds } from '../contract/platform-settings.js'
import type { Receipt } from '../contract/receipt.js'
import type { RunRequest } from '../contract/run.js'
import type { StoredSnapshot } from '../contract/snapshot-store.js'
import type { SpecInput } from '../contract/spec.js'
import { type PlannedSandbox, planSandbox } from '../policy/apply.js'
import { matchesFilter, parseFilter } from '../policy/spec.js'
import type { AsideProcess } from './aside-process.js'
import { BegunSource } from './begun-python.js'
import { ChangesFacet } from './changes-facet.js'
import { CodeFacet } from './code-facet.js'
import { checkCreationOptions, closedMeanwhile, Creation, type CreationOrder, during } from './creation.js'
import { FilesFacet } from './files-facet.js'
import type { EngineOptions } from './engine-options.js'
import { Filters } from './filters.js'
import { LifeFacet } from './life-facet.js'
import { LiveSandbox } from './live-sandbox.js'
import { prepareCell, type Tools } from './making.js'
import { firstProgram } from './first-program.js'
import { makeHome } from './making-home.js'
import { NetworkFacet } from './network-facet.js'
import { type Remade, type RemakeOrder, remakeCell } from './remaking.js'
import { PoolsFacet, type PoolsHost } from './pools-facet.js'
import { PortsFacet } from './ports-facet.js'
import { Probes } from './probes.js'
import { ProcessesFacet } from './processes-facet.js'
import { type Birth, infoAtBirth } from './sandbox-birth.js'
import type { SandboxMaking } from './sandbox-making.js'
import { SandboxRegister } from './sandbox-register.js'
import { SnapshotsFacet } from './snapshots-facet.js'
import { Telling } from './telling.js'

const defaultBounds: PlatformBounds = { maxSandboxes: 1000, maxRuns: 256, answerMs: 20_000, maxRingBytes: 64 * 2 ** 20, maxPausedMs: 24 * 3_600_000 }

/** The platform on this machine: owns every sandbox it creates until nothing of it is left. */
export class Engine implements Platform {
  readonly processes = new ProcessesFacet((id) => this.#register.find(id))
  readonly life = new LifeFacet((id) => this.#register.find(id))
  readonly events: PlatformEvents
  readonly pools: PoolsFacet
  readonly snapshots: SnapshotsFacet
  readonly code: CodeFacet
  readonly files = new FilesFacet(async (id) => (await this.#register.find(id)).files)
  readonly changes = new ChangesFacet(async (id) => {
    const { files, hold } = await this.#register.find(id)
    return { files, layers: hold.layered.cell.layers }
  })
  readonly network = new NetworkFacet((id) => this.#register.find(id))
  readonly ports = new PortsFacet((id) => this.#register.find(id))
  readonly #options: EngineOptions
  readonly #bounds: PlatformBounds
  readonly #probes = new Probes()
  readonly #tools: Tools
  readonly #creations = new Set<Creation>()
  /** Those that get what was made ahead. */
  readonly #takes = new Set<Creation>()
  /** What was closed while a snapshot was looked for: nobody knew yet of the sandbox that is to begin with it. */
  readonly #lookups = new Set<SandboxFilter[]>()
  readonly #register = new SandboxRegister()
  readonly #telling: Telling
  /** Read once. */
  #zygotes: ReturnType<NonNullable<SandboxMaking['zygotes']>>
  #isDisposed = false

  constructor(options: EngineOptions) {
    this.#options = options
    this.#bounds = { ...defaultBounds, ...options.bounds }
    this.events = options.events
    this.#telling = new Telling(options.events)
    this.snapshots = new SnapshotsFacet({
      store: options.snapshots,
      find: (id) => this.#register.find(id),
      create: (planned, origin, signal) => this.#create({ planned, origin }, signal),
      close: (id) => this.close(id),
      faults: options.faults,
    })
    this.code = new CodeFacet((id) => this.#register.find(id), options.runtimes)
    this.#tools = { makers: this.#telling.withRecords(options), filters: new Filters(options.filter), probes: this.#probes }
    this.pools = new PoolsFacet(this.#poolsHost())
  }

  async create(input: SpecInput, options: CreationOptions = {}): Promise<SandboxInfo> {
    const { signal, onRequest } = checkCreationOptions(options)
    signal?.throwIfAborted()
    const plan = (spec: SpecInput): PlannedSandbox => planSandbox(spec, this.#options.policy)
    // Without one nothing is waited for, so that whoever closes everything right after this call calls off this sandbox too.
    const sought = this.snapshots.originOf(input)
    if (!sought) return this.#create({ planned: plan(input), origin: undefined, onRequest }, signal)
    const closed: SandboxFilter[] = []
    this.#lookups.add(closed)
    try {
      const origin = await sought
      signal?.throwIfAborted()
      const planned = this.snapshots.plan(input, origin, plan)
      if (closed.some((filter) => matchesFilter(planned, filter))) throw closedMeanwhile()
      return await this.#create({ planned, origin, onRequest }, signal)
    } finally {
      this.#lookups.delete(closed)
    }
  }

  async #create(order: CreationOrder, signal: AbortSignal | undefined): Promise<SandboxInfo> {
    this.#checkOpen()
    this.pools.checkRoom()
    const creation = new Creation(order, signal)
    return (await during(creation, this.#creations, () => this.#make(creation))).info
  }

  async info(id: string, options: CallOptions = {}): Promise<SandboxInfo> {
    checkCallOptions(options).signal?.throwIfAborted()
    return (await this.#register.find(id)).info
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- an async generator is the shortest way to an async iterator
  async *list(filter?: SandboxFilter, options: CallOptions = {}): AsyncGenerator<SandboxInfo, void, undefined> {
    const { signal } = checkCallOptions(options)
    const wanted = parseFilter(filter)
    for (const sandbox of this.#register.all) {
      signal?.throwIfAborted()
      if (!sandbox.over && matchesFilter(sandbox.info, wanted)) yield sandbox.info
    }
  }

  async start(id: string, request: RunRequest, options: CallOptions = {}): Promise<PlatformProcess> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const sandbox = await this.#register.find(id)
    return sandbox.start(request, signal)
  }

  /** For what is built on the engine, and no part of a platform: a kept program with a third stream. */
  async startAside(id: string, request: RunRequest, options: CallOptions = {}): Promise<AsideProcess> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const sandbox = await this.#register.find(id)
    return sandbox.startAside(request, signal)
  }

  async limit(id: string, limits: LimitsInput, options: CallOptions = {}): Promise<SandboxInfo> {
    checkCallOptions(options).signal?.throwIfAborted()
    return (await this.#register.find(id)).limit(limits)
  }

  async usage(id: string, options: CallOptions = {}): Promise<SandboxUsage> {
    checkCallOptions(options).signal?.throwIfAborted()
    return (await this.#register.find(id)).usage()
  }

  async receipt(id: string, options: CallOptions = {}): Promise<Receipt> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const unsigned = await (await this.#register.find(id)).receipt()
    signal?.throwIfAborted()
    return this.#options.signer.sign(unsigned)
  }

  async close(id: string): Promise<void> {
    await this.#register.get(id)?.close()
  }

  /** Also calls off what is being created, so that nothing that matches appears afterwards. */
  async closeAll(filter?: SandboxFilter): Promise<number> {
    const wanted = parseFilter(filter)
    for (const closed of this.#lookups) closed.push(wanted)
    const creations = [...this.#creations, ...this.#takes].filter((creation) => matchesFilter(creation, wanted))
    const sandboxes = this.#register.all.filter((sandbox) => matchesFilter(sandbox.info, wanted))
    const running = sandboxes.filter((sandbox) => !sandbox.over)
    const unused = Object.keys(wanted).length === 0 ? [this.pools.clear()] : []
    await settleAll([...creations.map((creation) => creation.callOff()), ...sandboxes.map((sandbox) => sandbox.close()), ...unused])
    return running.length
  }

  async probe(options: CallOptions = {}): Promise<readonly Probe[]> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const probes = await this.#probes.fresh(this.#options.drivers)
    signal?.throwIfAborted()
    return probes
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true
    await settleAll([this.closeAll(), this.pools.closeAll()]).finally(async () => {
      await this.#options.sweep?.settled()
      await this.#options.egress?.close()
      this.#options.events.close()
    })
  }

  async #make(creation: Creation): Promise<LiveSandbox> {
    const { planned, signal } = creation
    const id = this.#register.newId()
    await this.pools.makeRoom()
    const preparation = await prepareCell({ id, planned, signal, origin: creation.origin?.info, onRequest: creation.onRequest }, this.#tools)
    signal.throwIfAborted()
    const first = creation.origin ? undefined : firstProgram(preparation, planned)
    const home = await makeHome(preparation, this.#tools, { signal, answerMs: this.#bounds.answerMs, first })
    const sandbox = this.#bear({ id, planned, preparation, home, pooled: false })
    try {
      this.#options.faults?.('create/born')
      if (creation.origin) await this.#restore(sandbox, creation.origin, signal)
      this.#show(sandbox)
      this.#options.faults?.('create/shown')
      signal.throwIfAborted()
      return sandbox
    } catch (error) {
      await sandbox.close()
      signal.throwIfAborted()
      throw error
    }
  }

  #bear(birth: Birth): LiveSandbox {
    const { id, planned, home, pooled } = birth
    const { tenant } = this.#options
    return new LiveSandbox({
      info: infoAtBirth(birth),
      ...(tenant !== undefined && { whose: { tenant } }),
      home,
      made: { fresh: 'cell', pooled },
      policy: planned.policy,
      origins: planned.origins,
      bounds: this.#bounds,
      machine: this.#options.machine,
      listen: this.#options.listen,
      remake: (again, within) => this.#remake({ id, planned: again, signal: within, templateId: home.root.id }),
      keepAside: (layered, options) => this.snapshots.keepAside(layered, options),
      zygotes: () => (this.#zygotes ??= this.#options.runtimes().zygote?.()),
      onGone: (why) => {
        this.#register.forget(id, why)
        birth.onGone?.()
      },
    })
  }

  /** It is somebody's from now on. */
  #show(sandbox: LiveSandbox): void {
    this.#register.add(sandbox.info.id, sandbox)
    this.#telling.show(sandbox)
  }

  #poolsHost(): PoolsHost {
    const { machine, signer, onIdleExit, tenant = '' } = this.#options
    return {
      tenant,
      tools: this.#tools,
      bounds: this.#bounds,
      begun: new BegunSource(() => this.#options.runtimes().begun?.()),
      machine,
      ...(onIdleExit && { onIdleExit }),
      newId: () => this.#register.newId(),
      inUse: () => this.#creations.size + this.#register.count,
      checkOpen: () => this.#checkOpen(),
      plan: (spec) => planSandbox(spec, this.#options.policy),
      create: (spec, options) => this.create(spec, options),
      find: (id) => this.#register.find(id),
      sign: (unsigned) => signer.sign(unsigned),
      bear: (birth) => this.#bear(birth),
      show: (sandbox) => this.#show(sandbox),
      telling: this.#telling,
      beginCode: (sandbox, language) => this.code.begin(sandbox, language),
      during: (planned, signal, act) => this.#take(new Creation({ planned, origin: undefined }, signal), act),
    }
  }

  async #take<T>(creation: Creation, act: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.#checkOpen()
    return during(creation, this.#takes, () => act(creation.signal))
  }

  #checkOpen(): void {
    if (this.#isDisposed) throw new SandboxError('closed', 'this platform was closed')
  }

  /** Nobody has seen it before its files are there. */
  async #restore(sandbox: LiveSandbox, origin: StoredSnapshot, signal: AbortSignal): Promise<void> {
    await this.snapshots.restore(sandbox.hold.layered, origin, signal)
    this.#options.faults?.('create/restored')
    if (sandbox.over) throw await sandbox.over
  }

  #remake(order: RemakeOrder): Promise<Remade> {
    return remakeCell(order, this.#tools, this.#bounds.answerMs)
  }
}

/** Waits for all, then throws the first error: one sandbox that cannot be closed keeps no other from it. */
async function settleAll(pending: readonly Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(pending)).find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
}
