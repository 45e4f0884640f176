import type { PlannedSandbox } from '../policy/apply.js'
import { classKey } from './pool-class.js'
import { CellPool, type PoolGround, sizesFor } from './pool-cells.js'

/** Two of a class within so long are taken for a sign that more will follow. */
const soonMs = 10_000
/** Once nobody has asked for so long, none of a class waits any more. */
const idleAfterMs = 30_000
const recycleAfterMs = 600_000
/** More are forgotten, the one that was used longest ago first. */
const mostClasses = 32

interface Known {
  seenAt: number
  pool?: CellPool
}

export interface PoolClassesOrder {
  onChange(): void
  /** What is not needed any more is closed while nobody waits for it. */
  retire(pool: CellPool): void
}

/** The pools that nobody asked for: of each class of sandboxes that are used once and often. A single use costs nothing more than it takes. */
export class PoolClasses {
  readonly #ground: PoolGround
  readonly #order: PoolClassesOrder
  /** The latest used is last. */
  readonly #known = new Map<string, Known>()

  constructor(ground: PoolGround, order: PoolClassesOrder) {
    this.#ground = ground
    this.#order = order
  }

  get pools(): readonly CellPool[] {
    return [...this.#known.values()].flatMap(({ pool }) => pool ?? [])
  }

  /** Undefined while nothing says that more of this class will follow. */
  poolFor(planned: PlannedSandbox): CellPool | undefined {
    // There are no tenants yet: whoever uses this platform is one.
    const key = classKey({ planned, fresh: 'cell', tenant: '' })
    const known: Known = this.#known.get(key) ?? { seenAt: -Infinity }
    const now = performance.now()
    const isSoon = now - known.seenAt < soonMs
    known.seenAt = now
    this.#known.delete(key)
    this.#known.set(key, known)
    this.#forgetOldest()
    if (isSoon) known.pool ??= this.#open(planned)
    return known.pool
  }

  /** All of them, which are nobody's from then on. */
  clear(): readonly CellPool[] {
    const { pools } = this
    this.#known.clear()
    return pools
  }

  #forgetOldest(): void {
    for (const [key, { pool }] of this.#known) {
      if (this.#known.size <= mostClasses) break
      this.#known.delete(key)
      if (pool) this.#order.retire(pool)
    }
  }

  #open(planned: PlannedSandbox): CellPool {
    const { maxSandboxes } = this.#ground.bounds
    const usual = sizesFor({ queue: maxSandboxes, recycleAfter: recycleAfterMs, idleAfter: idleAfterMs, fresh: 'cell', max: maxSandboxes }, this.#ground)
    return new CellPool({ planned, sizes: usual, name: 'the pool of one-shots', onChange: () => this.#order.onChange() }, this.#ground)
  }
}
