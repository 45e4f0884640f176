import { checkCallOptions } from '../contract/call-options.js'
import { SandboxError } from '../contract/errors.js'
import { kindOf } from '../contract/plain-object.js'
import type { CreationOptions } from '../contract/platform-network.js'
import type { CallOptions, SandboxInfo } from '../contract/platform.js'
import {
  type Claim,
  claimSchema,
  type OneShot,
  type OneShotCall,
  type OneShotPlace,
  type OneShotRunCall,
  type PlatformPools,
  type PoolInfo,
  type PoolInput,
  poolSchema,
  type PoolSettings,
  type PoolStatus,
  type Released,
} from '../contract/pools.js'
import type { Receipt, UnsignedReceipt } from '../contract/receipt.js'
import type { RunRequest } from '../contract/run.js'
import type { SpecInput } from '../contract/spec.js'
import type { PlannedSandbox } from '../policy/apply.js'
import { parseObject } from '../policy/refusal.js'
import { checkCreationOptions } from './creation.js'
import type { LiveSandbox } from './live-sandbox.js'
import { checkPooled, unpooledBecause } from './pool-class.js'
import { type Acquisition, CellPool, type CellPoolOrder, type PoolGround, sizesFor } from './pool-cells.js'
import { PoolClasses, usualRuns } from './pool-classes.js'
import { Closings } from './pool-closings.js'
import { oneShotPools, PoolLevels, sumOf } from './pool-levels.js'
import { LinerPool } from './pool-liners.js'
import { entrust, finished, type OneShotHost, shootOnce, storyOf } from './pool-one-shot.js'
import { chosenProbe } from './making.js'
import { checkLined, checkOneShot, checkOneShotRun, checkSettings, isLinable, tooMany, unlinedField, waitOf } from './pool-refusals.js'

/** What pools need of the engine, besides what they make cells with. */
export interface PoolsHost extends Omit<PoolGround, 'count' | 'checkRoom' | 'makeRoom'> {
  /** Sandboxes that are somebody's, those being created included. */
  inUse(): number
  /** Throws SandboxError('closed') once nothing is to be made any more. */
  checkOpen(): void
  plan(spec: SpecInput): PlannedSandbox
  create(spec: SpecInput, options: CreationOptions): Promise<SandboxInfo>
  /** Whoever closes what matches calls this off too. */
  during<T>(planned: PlannedSandbox, signal: AbortSignal | undefined, act: (signal: AbortSignal) => Promise<T>): Promise<T>
  find(id: string): Promise<LiveSandbox>
  sign(unsigned: UnsignedReceipt): Promise<Receipt>
  /** Called when this process has nothing left to do; calls it off. */
  onIdleExit?: (act: () => Promise<void>) => () => void
}

interface OwnPool {
  readonly kept: CellPool | LinerPool
  readonly planned: PlannedSandbox
}

interface Lined {
  readonly kept: LinerPool
  readonly planned: PlannedSandbox
}

/** So many are closed at once while nobody waits for them. */
const mostClosings = 8

/** Sandboxes that are made before anyone asks for them, as the platform's doors see them. */
export class PoolsFacet implements PlatformPools {
  readonly #host: PoolsHost
  readonly #ground: PoolGround
  readonly #own = new Map<string, OwnPool>()
  readonly #classes: PoolClasses
  readonly #closings = new Closings(mostClosings, () => this.#watchExit())
  readonly #shots: OneShotHost = { sign: (unsigned) => this.#host.sign(unsigned), letGo: (sandbox) => this.#letGo(sandbox) }
  readonly #levels: PoolLevels
  #stopWatching: (() => void) | undefined

  constructor(host: PoolsHost) {
    this.#host = host
    this.#levels = new PoolLevels(host.telling, () => this.#statuses())
    const ground = { count: () => this.#count, checkRoom: () => this.checkRoom(), makeRoom: () => this.makeRoom() }
    this.#ground = { ...host, ...ground, newId: () => host.newId() }
    this.#classes = new PoolClasses(this.#ground, {
      onChange: () => this.#watchExit(),
      sign: (unsigned) => host.sign(unsigned),
      retire: ({ pool }) =>
        this.#closings.begin(
          () => pool.sleep(),
          () => undefined,
        ),
    })
  }

  async create(spec: SpecInput, settings: PoolInput = {}, options: CallOptions = {}): Promise<PoolInfo> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const wanted = parseObject(poolSchema, settings, { what: 'pool', objects: [] })
    checkSettings(wanted)
    const planned = this.#host.plan(spec)
    checkPooled(planned.spec)
    if (wanted.fresh === 'liner') checkLined(planned.spec)
    this.#host.checkOpen()
    const sizes = sizesFor(wanted, this.#ground)
    const id = this.#host.newId()
    const kept = this.#open({ planned, sizes, name: `pool ${id}`, onChange: () => this.#watchExit() }, wanted)
    this.#own.set(id, { kept, planned })
    try {
      // The first shows whether there can be any.
      if (sizes.size > 0) await kept.pool.first(signal)
      return { id, spec: planned.spec, size: sizes.size, max: sizes.max }
    } catch (error) {
      await this.close(id)
      throw error
    }
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- what is wrong is told as any platform tells it, by a rejection
  async status(pool: string, options: CallOptions = {}): Promise<PoolStatus> {
    checkCallOptions(options).signal?.throwIfAborted()
    return this.#find(pool).kept.pool.status
  }

  async acquire(pool: string, claim: Claim = {}, options: CreationOptions = {}): Promise<SandboxInfo> {
    checkCreationOptions(options).signal?.throwIfAborted()
    return (await this.#acquire(pool, claim, options)).info
  }

  async close(pool: string): Promise<void> {
    await this.#own.get(pool)?.kept.pool.close()
    this.#own.delete(pool)
    this.#watchExit()
  }

  async take(spec: SpecInput, options: OneShotCall = {}): Promise<SandboxInfo> {
    return (await this.#take(spec, checkOneShot(options))).info
  }

  async release(sandbox: string): Promise<Released> {
    const found = await this.#host.find(sandbox).catch(() => undefined)
    if (!found) return {}
    try {
      return await finished(storyOf(found))
    } finally {
      this.#letGo(found)
    }
  }

  async run(place: OneShotPlace, request: RunRequest, options: OneShotRunCall = {}): Promise<OneShot> {
    const call = checkOneShotRun(options)
    call.signal?.throwIfAborted()
    const lined = await this.#linedFor(place, request, call)
    if (lined) {
      const own = { onRequest: call.onRequest, after: waitOf(call, lined.planned.spec) }
      const how = (within: AbortSignal) => ({ ...own, signal: call.signal ? AbortSignal.any([call.signal, within]) : within })
      return this.#host.during(lined.planned, call.signal, (within) => lined.kept.run(lined.planned, request, how(within)))
    }
    await call.after
    const sandbox = 'pool' in place ? await this.#acquire(place.pool, {}, { ...call, only: request }) : await this.#take(place.spec, call, request)
    return shootOnce(sandbox, { request, signal: call.signal }, this.#shots)
  }

  /** Those that wait, and those on their way there. */
  get unused(): number {
    return this.#pools.reduce((sum, { pool }) => sum + pool.unused, 0)
  }

  /** Throws SandboxError('busy') when there is no room for one more that is somebody's. */
  checkRoom(): void {
    const count = this.#pools.reduce((sum, { pool, hidden }) => sum + pool.promised + hidden, this.#host.inUse())
    if (count >= this.#host.bounds.maxSandboxes) throw tooMany(count)
  }

  /** As many of those that wait are closed as there are too many sandboxes. Throws SandboxError('busy') when that does not do. */
  async makeRoom(): Promise<void> {
    while (this.#count > this.#host.bounds.maxSandboxes) {
      const way = this.#pools.map(({ pool }) => pool.giveWay()).find((each) => each !== undefined)
      if (!way) throw tooMany(this.#count)
      await way
    }
  }

  /** None of those that nobody asked for waits any more. */
  async clear(): Promise<void> {
    await Promise.all(this.#classes.pools.map(({ pool }) => pool.sleep()))
    await this.#closings.settled()
  }

  /** Resolves when nothing is left of any. */
  async closeAll(): Promise<void> {
    const pools = [...this.#classes.clear(), ...[...this.#own.values()].map(({ kept }) => kept)]
    const closed = await Promise.allSettled(pools.map(({ pool }) => pool.close()))
    this.#own.clear()
    await this.#closings.settled()
    this.#watchExit()
    const failed = closed.find((result) => result.status === 'rejected')
    if (failed) throw failed.reason
  }

  get #pools(): readonly (CellPool | LinerPool)[] {
    return [...this.#classes.pools, ...[...this.#own.values()].map(({ kept }) => kept)]
  }

  #statuses(): ReadonlyMap<string, PoolStatus> {
    const shared = sumOf(this.#classes.pools.map(({ pool }) => pool.status))
    return new Map([[oneShotPools, shared], ...[...this.#own].map(([id, { kept }]) => [id, kept.pool.status] as const)])
  }

  get #count(): number {
    return this.#pools.reduce((sum, { pool, hidden }) => sum + pool.unused + hidden, this.#host.inUse())
  }

  #open(order: CellPoolOrder, { fresh, imports, language, recycleAfterRuns = usualRuns }: PoolSettings): CellPool | LinerPool {
    if (fresh === 'cell') return new CellPool({ ...order, language, imports }, this.#ground)
    return new LinerPool({ ...order, imports, recycleAfterRuns, sign: (unsigned) => this.#host.sign(unsigned) }, this.#ground)
  }

  async #acquire(pool: string, claim: Claim, { signal, only, onRequest }: Acquisition & Pick<OneShotCall, 'onRequest'>): Promise<LiveSandbox> {
    const { kept, planned } = this.#find(pool)
    if (kept instanceof LinerPool) throw new SandboxError('conflict', `pool ${pool} keeps liners, which are for run(); none of them is a sandbox`)
    const { name, agent, metadata } = parseObject(claimSchema, claim, { what: 'claim', objects: ['metadata'] })
    const whose = { ...(name !== undefined && { name }), ...(agent !== undefined && { agent }), ...(metadata !== undefined && { metadata }) }
    const claimed = { ...planned, spec: { ...planned.spec, ...whose } }
    return entrust(await this.#host.during(claimed, signal, (within) => kept.acquire(claimed, { signal: within, only })), onRequest, this.#shots)
  }

  async #take(spec: SpecInput, { fresh, pool, signal, language, onRequest }: OneShotCall, only?: RunRequest): Promise<LiveSandbox> {
    if (fresh === 'liner') throw new SandboxError('unsupported', "fresh: 'liner' is for commands; a sandbox is a cell", { hint: "fresh: 'cell'" })
    await this.#closings.room()
    const planned = pool === false ? undefined : this.#pooledPlan(spec)
    const cells = planned && this.#classes.cellsFor(planned, language)
    if (cells) return entrust(await this.#host.during(planned, signal, (within) => cells.acquire(planned, { signal: within, only })), onRequest, this.#shots)
    const { id } = await this.#host.create(spec, { ...(signal && { signal }), ...(onRequest && { onRequest }) })
    return this.#host.find(id)
  }

  /** Undefined for what is created when it is asked for. */
  #pooledPlan(spec: SpecInput): PlannedSandbox | undefined {
    // What begins with a snapshot is planned with it.
    if (typeof spec !== 'object' || (spec as SpecInput | null)?.from !== undefined) return undefined
    const planned = this.#host.plan(spec)
    return unpooledBecause(planned.spec) === undefined ? planned : undefined
  }

  /** Undefined for a run that has a cell of its own. */
  async #linedFor(place: OneShotPlace, request: RunRequest, { fresh, pool }: OneShotCall): Promise<Lined | undefined> {
    if ('pool' in place) {
      const { kept, planned } = this.#find(place.pool)
      return kept instanceof LinerPool ? { kept, planned } : undefined
    }
    if (fresh === 'cell' || pool === false) return undefined
    const planned = fresh === 'liner' ? this.#linedPlan(place.spec) : await this.#linablePlan(place.spec, request)
    return planned && { kept: this.#classes.linersFor(planned), planned }
  }

  /** Throws what no run in a liner can have: it was asked for by name. */
  #linedPlan(spec: SpecInput): PlannedSandbox {
    const planned = this.#host.plan(spec)
    checkPooled(planned.spec)
    checkLined(planned.spec)
    return planned
  }

  /** What nobody said is a liner where there can be one; undefined where a cell is the way, which also tells what is wrong. */
  async #linablePlan(spec: SpecInput, request: RunRequest): Promise<PlannedSandbox | undefined> {
    const planned = this.#pooledPlan(spec)
    if (!planned || unlinedField(planned.spec) !== undefined || !isLinable(request)) return undefined
    const probe = await chosenProbe(planned, this.#host.tools).catch(() => undefined)
    return probe?.features.liners.available ? planned : undefined
  }

  /** What is not closed stays among the sandboxes, and is closed again with the platform. */
  #letGo(sandbox: LiveSandbox): void {
    this.#closings.begin(
      () => sandbox.close(),
      (error) => this.#pools.forEach(({ pool }) => pool.note(error)),
    )
  }

  #find(pool: string): OwnPool {
    const known = this.#own.get(pool)
    if (!known) throw new SandboxError('not-found', `there is no pool ${typeof pool === 'string' ? pool.slice(0, 40) : kindOf(pool)} here`)
    return known
  }

  /** Nothing that waits keeps this process alive, and nothing of it is left when the process ends by itself. */
  #watchExit(): void {
    this.#levels.changed()
    const isNeeded = this.unused > 0 || this.#closings.count > 0
    if (isNeeded) this.#stopWatching ??= this.#host.onIdleExit?.(() => this.#finish())
    else {
      this.#stopWatching?.()
      this.#stopWatching = undefined
    }
  }

  async #finish(): Promise<void> {
    await Promise.all(this.#pools.map(({ pool }) => pool.sleep()))
    await this.#closings.settled()
  }
}
