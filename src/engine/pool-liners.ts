import type { OneShot } from '../contract/pools.js'
import type { CreationOptions } from '../contract/platform-network.js'
import type { PlatformProcess, SandboxInfo } from '../contract/platform.js'
import type { Receipt, UnsignedReceipt } from '../contract/receipt.js'
import type { RunRequest } from '../contract/run.js'
import type { PlannedSandbox } from '../policy/apply.js'
import { prepareCell } from './making.js'
import { makeHome } from './making-home.js'
import type { WayStory } from './network.js'
import { type HandedOut, Pool } from './pool.js'
import { dropOutdated, type PoolGround, type PoolSizes } from './pool-cells.js'
import { finished, networkOf } from './pool-one-shot.js'
import { noLiners } from './pool-refusals.js'
import type { ZygoteOrder } from './zygote.js'
import { hostPlan, isPython, LinedCell, linedRequest, retoldOf } from './pool-lined-cell.js'

export interface LinerPoolOrder {
  readonly planned: PlannedSandbox
  readonly sizes: PoolSizes
  /** How it is called in messages. */
  readonly name: string
  readonly recycleAfterRuns: number
  /** Modules that are imported ahead, or there is no cell; undefined: none, and where there is no Python that is fine. */
  readonly imports: readonly string[] | undefined
  /** Nothing says yet that a second run follows: nothing is made ahead, and Python only once it was run. */
  readonly isForOne?: boolean
  sign(unsigned: UnsignedReceipt): Promise<Receipt>
  onChange(): void
}

interface Lease {
  readonly item: LinedCell
  readonly pool: 'hit' | 'miss'
  /** Called once, when its run has nothing of it any more. */
  onOver: () => void
  /** Its run is over: the cell waits for the next, or is closed. */
  end(): void
}

type LinedHow = Pick<CreationOptions, 'signal'> & {
  readonly onRequest?: CreationOptions['onRequest'] | undefined
  readonly after?: Promise<unknown> | undefined
}

interface LinedRun {
  readonly id: string
  readonly planned: PlannedSandbox
  readonly lease: Lease
  readonly program: PlatformProcess
  readonly story: WayStory | undefined
}

/** Cells of one class in which runs have liners, one at a time each. What a run leaves goes with its liner; the cell itself is closed after so many. */
export class LinerPool {
  readonly pool: Pool<LinedCell>
  readonly #order: LinerPoolOrder
  readonly #ground: PoolGround
  #hasPython: boolean
  #isForOne: boolean

  constructor(order: LinerPoolOrder, ground: PoolGround) {
    this.#order = order
    this.#ground = ground
    this.#isForOne = order.isForOne === true
    this.#hasPython = !this.#isForOne
    this.pool = new Pool({
      name: order.name,
      ...order.sizes,
      comesBack: true,
      atOnce: Math.max(1, Math.floor(ground.machine.processors / 2)),
      make: async (signal) => {
        ground.checkRoom()
        // By then it is counted itself.
        await Promise.resolve()
        await ground.makeRoom()
        return this.#make(signal)
      },
      hasRoom: () => ground.count() < ground.bounds.maxSandboxes,
      onChange: () => order.onChange(),
    })
  }

  /** Cells that somebody's run is in: they are in no list of sandboxes. */
  get hidden(): number {
    return this.pool.status.inUse
  }

  /** Others will follow: so many cells are kept ready from now on. */
  expectMore(size: number): void {
    this.#isForOne = false
    this.pool.resize(size)
  }

  async run(planned: PlannedSandbox, request: RunRequest, { signal, onRequest, after }: LinedHow = {}): Promise<OneShot> {
    if (isPython(request.command)) this.#hasPython = true
    await dropOutdated(this.pool, planned.spec.template, this.#ground)
    const lease = await this.pool.acquire((item) => this.#lend(item), signal)
    try {
      const id = this.#ground.newId()
      // What others were allowed, carried or counted is not for this run.
      await lease.item.home.network?.renew({ id, onRequest })
      const story = lease.item.home.network?.story()
      await after
      const program = await lease.item.sandbox.startLined(linedRequest(request, planned), signal)
      return this.#oneShot({ id, planned, lease, program, story })
    } catch (error) {
      lease.end()
      throw error
    }
  }

  async #make(signal: AbortSignal): Promise<LinedCell> {
    const { tools, bounds } = this.#ground
    const planned = hostPlan(this.#order.planned)
    const id = this.#ground.newId()
    const preparation = await prepareCell({ id, planned, signal, liners: true }, tools)
    const { liners } = preparation.choice.probe.features
    if (!liners.available) throw noLiners(liners.why)
    signal.throwIfAborted()
    const home = await makeHome(preparation, tools, { signal, answerMs: bounds.answerMs })
    const sandbox = this.#ground.bear({ id, planned, preparation, home, pooled: true })
    const { imports } = this.#order
    const zygote = (): ZygoteOrder | undefined => (this.#hasPython && !this.#isForOne ? { language: 'python', imports: imports ?? [] } : undefined)
    const item = new LinedCell({ sandbox, home, zygote, onFailure: (error) => this.pool.note(error) })
    try {
      // What was asked for by name is there, or the cell is not.
      if (imports !== undefined) await item.ensureZygote(signal)
      return item
    } catch (error) {
      await sandbox.close()
      throw error
    }
  }

  #lend(item: LinedCell): HandedOut<Lease, LinedCell> {
    let over: (again: LinedCell | undefined) => void = () => undefined
    const gone = new Promise<LinedCell | undefined>((resolve) => {
      over = resolve
    })
    const close = async (): Promise<void> => {
      await item.close()
      over(undefined)
    }
    item.runs += 1
    const lease: Lease = { item, pool: item.hasWaited ? 'hit' : 'miss', onOver: () => undefined, end: () => end() }
    item.hasWaited = false
    void gone.then(() => lease.onOver())
    const end = (): void => {
      if (item.isAlive && item.runs < this.#order.recycleAfterRuns) over(item)
      // What is not closed keeps its place.
      else close().catch((error: unknown) => this.pool.note(error))
    }
    return { value: lease, over: gone, close }
  }

  #oneShot({ id, planned, lease, program, story }: LinedRun): OneShot {
    const { sandbox } = lease.item
    let hasEnded = false
    const note = (): void => {
      hasEnded = true
    }
    program.ended.then(note, note)
    const { spec: hostSpec, pool: _pool, ...told } = sandbox.info
    const now = Date.now()
    const times = { createdAt: new Date(now).toISOString(), expiresAt: new Date(now + planned.spec.lifetimeMs).toISOString() }
    const info: SandboxInfo = { ...told, ...times, id, pool: lease.pool, spec: { ...planned.spec, limits: hostSpec.limits }, clamped: planned.clamped }
    lease.onOver = this.#ground.telling.lined(info, program)
    return {
      sandbox: info,
      program,
      ...(story && { network: networkOf(story) }),
      receipt: async (options = {}) => {
        const unsigned = await sandbox.receipt({ retell: retoldOf({ info, origins: planned.origins }), isOfEndedLiner: hasEnded })
        options.signal?.throwIfAborted()
        return this.#order.sign(unsigned)
      },
      release: async () => {
        if (!hasEnded) await program.kill('nobody waits for it').catch(() => undefined)
        try {
          return await finished(story)
        } finally {
          lease.end()
        }
      },
    }
  }
}
