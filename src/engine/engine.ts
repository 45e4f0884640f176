import { randomInt } from 'node:crypto'
import { checkCallOptions } from '../contract/call-options.js'
import type { Probe } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { LimitsInput } from '../contract/limits.js'
import type { CallOptions, Platform, PlatformProcess, SandboxFilter, SandboxInfo, SandboxUsage } from '../contract/platform.js'
import type { PlatformBounds } from '../contract/platform-settings.js'
import type { Policy } from '../contract/policy.js'
import type { Receipt, UnsignedReceipt } from '../contract/receipt.js'
import type { RunRequest } from '../contract/run.js'
import type { SnapshotStore, StoredSnapshot } from '../contract/snapshot-store.js'
import type { SpecInput } from '../contract/spec.js'
import { type PlannedSandbox, planSandbox } from '../policy/apply.js'
import { matchesFilter, parseFilter, parseId } from '../policy/spec.js'
import type { AsideProcess } from './aside-process.js'
import { ChangesFacet } from './changes-facet.js'
import { CodeFacet } from './code-facet.js'
import type { RuntimeSource } from './code-runtimes.js'
import { closedMeanwhile, Creation } from './creation.js'
import { FilesFacet } from './files-facet.js'
import { Filters, type FilterSource } from './filters.js'
import { LifeFacet } from './life-facet.js'
import { LiveSandbox, type SandboxMaking } from './live-sandbox.js'
import { makeCellInTime, type Makers, prepareCell, type Tools } from './making.js'
import { type Remade, type RemakeOrder, remakeCell } from './remaking.js'
import { PortsFacet } from './ports-facet.js'
import { Probes } from './probes.js'
import { ProcessesFacet } from './processes-facet.js'
import { SnapshotsFacet } from './snapshots-facet.js'

export interface EngineOptions extends Makers {
  /** The compiled seccomp filter for guests; asked for when a driver that filters opens a cell. */
  readonly filter: FilterSource
  readonly signer: { sign(unsigned: UnsignedReceipt): Promise<Receipt> }
  readonly machine: SandboxMaking['machine']
  readonly listen: SandboxMaking['listen']
  /** Where snapshots are kept. */
  readonly snapshots: SnapshotStore
  /** The kernels of the code interpreter; asked for at the first use. */
  readonly runtimes: () => RuntimeSource
  /** The operator's, which holds whatever a spec brings. */
  readonly policy?: Policy
  readonly bounds?: Partial<PlatformBounds>
}

const defaultBounds: PlatformBounds = { maxSandboxes: 1000, maxRuns: 256, answerMs: 20_000, maxRingBytes: 64 * 2 ** 20, maxPausedMs: 24 * 3_600_000 }

const idAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'
const idLength = 20
const mostRemembered = 1000

/** The platform on this machine: owns every sandbox it creates until nothing of it is left. */
export class Engine implements Platform {
  readonly processes = new ProcessesFacet((id) => this.#find(id))
  readonly life = new LifeFacet((id) => this.#find(id))
  readonly snapshots: SnapshotsFacet
  readonly code: CodeFacet
  readonly files = new FilesFacet(async (id) => (await this.#find(id)).files)
  readonly changes = new ChangesFacet(async (id) => {
    const { files, hold } = await this.#find(id)
    return { files, layers: hold.layered.cell.layers }
  })
  readonly ports = new PortsFacet((id) => this.#find(id))
  readonly #options: EngineOptions
  readonly #bounds: PlatformBounds
  readonly #probes = new Probes()
  readonly #tools: Tools
  readonly #creations = new Set<Creation>()
  /** What was closed while a snapshot was looked for: nobody knew yet of the sandbox that is to begin with it. */
  readonly #lookups = new Set<SandboxFilter[]>()
  readonly #sandboxes = new Map<string, LiveSandbox>()
  /** Why the latest ones are gone, so that a late call is told more than that there is nothing. */
  readonly #gone = new Map<string, SandboxError>()
  #isDisposed = false

  constructor(options: EngineOptions) {
    this.#options = options
    this.#bounds = { ...defaultBounds, ...options.bounds }
    this.snapshots = new SnapshotsFacet({
      store: options.snapshots,
      find: (id) => this.#find(id),
      create: (planned, origin, signal) => this.#create(planned, origin, signal),
      close: (id) => this.close(id),
    })
    this.code = new CodeFacet((id) => this.#find(id), options.runtimes)
    this.#tools = { makers: options, filters: new Filters(options.filter), probes: this.#probes }
  }

  async create(input: SpecInput, options: CallOptions = {}): Promise<SandboxInfo> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const plan = (spec: SpecInput): PlannedSandbox => planSandbox(spec, this.#options.policy)
    // Without one nothing is waited for, so that whoever closes everything right after this call calls off this sandbox too.
    const sought = this.snapshots.originOf(input)
    if (!sought) return this.#create(plan(input), undefined, signal)
    const closed: SandboxFilter[] = []
    this.#lookups.add(closed)
    try {
      const origin = await sought
      signal?.throwIfAborted()
      const planned = this.snapshots.plan(input, origin, plan)
      if (closed.some((filter) => matchesFilter(planned, filter))) throw closedMeanwhile()
      return await this.#create(planned, origin, signal)
    } finally {
      this.#lookups.delete(closed)
    }
  }

  async #create(planned: PlannedSandbox, origin: StoredSnapshot | undefined, signal: AbortSignal | undefined): Promise<SandboxInfo> {
    if (this.#isDisposed) throw new SandboxError('closed', 'this platform was closed')
    const count = this.#creations.size + this.#sandboxes.size
    if (count >= this.#bounds.maxSandboxes) throw new SandboxError('busy', `there are ${count} sandboxes; no more are allowed at once`)
    const creation = new Creation({ planned, origin }, signal)
    this.#creations.add(creation)
    try {
      return (await this.#make(creation)).info
    } finally {
      this.#creations.delete(creation)
      creation.finish()
    }
  }

  async info(id: string, options: CallOptions = {}): Promise<SandboxInfo> {
    checkCallOptions(options).signal?.throwIfAborted()
    return (await this.#find(id)).info
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- an async generator is the shortest way to an async iterator
  async *list(filter?: SandboxFilter, options: CallOptions = {}): AsyncGenerator<SandboxInfo, void, undefined> {
    const { signal } = checkCallOptions(options)
    const wanted = parseFilter(filter)
    for (const sandbox of [...this.#sandboxes.values()]) {
      signal?.throwIfAborted()
      if (!sandbox.over && matchesFilter(sandbox.info, wanted)) yield sandbox.info
    }
  }

  async start(id: string, request: RunRequest, options: CallOptions = {}): Promise<PlatformProcess> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const sandbox = await this.#find(id)
    return sandbox.start(request, signal)
  }

  /** For what is built on the engine, and no part of a platform: a kept program with a third stream. */
  async startAside(id: string, request: RunRequest, options: CallOptions = {}): Promise<AsideProcess> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const sandbox = await this.#find(id)
    return sandbox.startAside(request, signal)
  }

  async limit(id: string, limits: LimitsInput, options: CallOptions = {}): Promise<SandboxInfo> {
    checkCallOptions(options).signal?.throwIfAborted()
    return (await this.#find(id)).limit(limits)
  }

  async usage(id: string, options: CallOptions = {}): Promise<SandboxUsage> {
    checkCallOptions(options).signal?.throwIfAborted()
    return (await this.#find(id)).usage()
  }

  async receipt(id: string, options: CallOptions = {}): Promise<Receipt> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const unsigned = await (await this.#find(id)).receipt()
    signal?.throwIfAborted()
    return this.#options.signer.sign(unsigned)
  }

  async close(id: string): Promise<void> {
    await this.#sandboxes.get(parseId(id))?.close()
  }

  /** Also calls off what is being created, so that nothing that matches appears afterwards. */
  async closeAll(filter?: SandboxFilter): Promise<number> {
    const wanted = parseFilter(filter)
    for (const closed of this.#lookups) closed.push(wanted)
    const creations = [...this.#creations].filter((creation) => matchesFilter(creation, wanted))
    const sandboxes = [...this.#sandboxes.values()].filter((sandbox) => matchesFilter(sandbox.info, wanted))
    const running = sandboxes.filter((sandbox) => !sandbox.over)
    await settleAll([...creations.map((creation) => creation.callOff()), ...sandboxes.map((sandbox) => sandbox.close())])
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
    await this.closeAll()
  }

  async #make(creation: Creation): Promise<LiveSandbox> {
    const { planned, signal } = creation
    const id = this.#newId()
    const preparation = await prepareCell({ id, planned, signal, origin: creation.origin?.info }, this.#tools)
    signal.throwIfAborted()
    const made = await makeCellInTime(preparation, this.#tools, { signal, answerMs: this.#bounds.answerMs })
    const { spec, choice, cell } = preparation
    const { clamped, policy, origins } = planned
    const now = Date.now()
    const sandbox = new LiveSandbox({
      info: {
        id,
        state: 'running',
        spec,
        ...(cell.root.id !== undefined && { templateId: cell.root.id }),
        driver: made.probe.driver,
        tier: made.probe.tier,
        createdAt: new Date(now).toISOString(),
        expiresAt: new Date(now + spec.lifetimeMs).toISOString(),
        unenforced: choice.unenforced,
        clamped,
      },
      home: { ...made, root: cell.root },
      policy,
      origins,
      bounds: this.#bounds,
      machine: this.#options.machine,
      listen: this.#options.listen,
      remake: (planned, within) => this.#remake({ id, planned, signal: within, templateId: cell.root.id }),
      keepAside: (layered, options) => this.snapshots.keepAside(layered, options),
      onGone: (why) => this.#forget(id, why),
    })
    if (creation.origin) await this.#restore(sandbox, creation.origin, signal)
    this.#sandboxes.set(id, sandbox)
    if (signal.aborted) {
      await sandbox.close()
      throw signal.reason
    }
    return sandbox
  }

  /** Nobody has seen it before its files are there. */
  async #restore(sandbox: LiveSandbox, origin: StoredSnapshot, signal: AbortSignal): Promise<void> {
    try {
      await this.snapshots.restore(sandbox.hold.layered, origin, signal)
      if (sandbox.over) throw await sandbox.over
    } catch (error) {
      await sandbox.close()
      signal.throwIfAborted()
      throw error
    }
  }

  #remake(order: RemakeOrder): Promise<Remade> {
    return remakeCell(order, this.#tools, this.#bounds.answerMs)
  }

  async #find(id: string): Promise<LiveSandbox> {
    const sandbox = this.#sandboxes.get(parseId(id))
    if (sandbox && !sandbox.over) return sandbox
    throw (await sandbox?.over) ?? this.#gone.get(id) ?? new SandboxError('not-found', `there is no sandbox ${id} here`)
  }

  #forget(id: string, why: SandboxError): void {
    this.#sandboxes.delete(id)
    this.#gone.set(id, why)
    for (const oldest of this.#gone.keys()) {
      if (this.#gone.size <= mostRemembered) break
      this.#gone.delete(oldest)
    }
  }

  #newId(): string {
    const id = Array.from({ length: idLength }, () => idAlphabet[randomInt(idAlphabet.length)]).join('')
    return this.#sandboxes.has(id) || this.#gone.has(id) ? this.#newId() : id
  }
}

/** Waits for all, then throws the first error: one sandbox that cannot be closed keeps no other from it. */
async function settleAll(pending: readonly Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(pending)).find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
}
