import type { Language } from '../contract/code.js'
import type { Receipt, UnsignedReceipt } from '../contract/receipt.js'
import type { PlannedSandbox } from '../policy/apply.js'
import { classKey, type ClassOf } from './pool-class.js'
import { CellPool, type CellPoolOrder, type PoolGround, type PoolSizes, sizesFor } from './pool-cells.js'
import { LinerPool } from './pool-liners.js'

/** Two of a class within so long are taken for a sign that more will follow. */
const soonMs = 10_000
/** Once nobody has asked for so long, none of a class waits any more. */
const idleAfterMs = 30_000
const recycleAfterMs = 600_000
/** More are forgotten, the one that was used longest ago first. */
const mostClasses = 32

/** A cell that has given liners to so many runs is closed. */
export const usualRuns = 1000

interface Known {
  seenAt: number
  cells?: CellPool
  liners?: LinerPool
}

export interface PoolClassesOrder {
  sign(unsigned: UnsignedReceipt): Promise<Receipt>
  onChange(): void
  /** What is not needed any more is closed while nobody waits for it. */
  retire(pool: CellPool | LinerPool): void
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

  get pools(): readonly (CellPool | LinerPool)[] {
    return [...this.#known.values()].flatMap(({ cells, liners }) => cells ?? liners ?? [])
  }

  /** Undefined while nothing says that more of this class will follow. */
  cellsFor(planned: PlannedSandbox, language?: Language): CellPool | undefined {
    const { known, isSoon } = this.#see({ planned, fresh: 'cell', language })
    if (isSoon) known.cells ??= new CellPool({ ...this.#common(planned), sizes: this.#sizes(language), language }, this.#ground)
    return known.cells
  }

  /** A liner is in a cell that is kept; that more are kept ready waits for a sign that more will follow. */
  linersFor(planned: PlannedSandbox): LinerPool {
    const { known, isSoon } = this.#see({ planned, fresh: 'liner' })
    const more = { recycleAfterRuns: usualRuns, imports: undefined, isForOne: true, sign: (unsigned: UnsignedReceipt) => this.#order.sign(unsigned) }
    known.liners ??= new LinerPool({ ...this.#common(planned), ...more, sizes: { ...this.#sizes(), size: 0 } }, this.#ground)
    if (isSoon) known.liners.expectMore(this.#sizes().size)
    return known.liners
  }

  /** All of them, which are nobody's from then on. */
  clear(): readonly (CellPool | LinerPool)[] {
    const { pools } = this
    this.#known.clear()
    return pools
  }

  #see(sought: Omit<ClassOf, 'tenant'>): { readonly known: Known; readonly isSoon: boolean } {
    const key = classKey({ ...sought, tenant: this.#ground.tenant })
    const known: Known = this.#known.get(key) ?? { seenAt: -Infinity }
    const now = performance.now()
    const isSoon = now - known.seenAt < soonMs
    known.seenAt = now
    this.#known.delete(key)
    this.#known.set(key, known)
    this.#forgetOldest()
    return { known, isSoon }
  }

  #forgetOldest(): void {
    for (const [key, { cells, liners }] of this.#known) {
      if (this.#known.size <= mostClasses) break
      this.#known.delete(key)
      const pool = cells ?? liners
      if (pool) this.#order.retire(pool)
    }
  }

  #sizes(language?: Language): PoolSizes {
    const { maxSandboxes } = this.#ground.bounds
    const settings = { queue: maxSandboxes, recycleAfter: recycleAfterMs, idleAfter: idleAfterMs, fresh: 'cell' as const, max: maxSandboxes, language }
    return sizesFor(settings, this.#ground)
  }

  #common(planned: PlannedSandbox): Omit<CellPoolOrder, 'sizes'> {
    return { planned, name: 'the pool of one-shots', onChange: () => this.#order.onChange() }
  }
}
