import { Deadline } from './deadline.js'
import type { PoolItem } from './pool.js'

interface Resting<Item> {
  readonly item: Item
  readonly since: number
  isReady: boolean
}

export interface ShelfOrder {
  readonly recycleAfterMs: number
  /** Undefined: never. */
  readonly idleAfterMs: number | undefined
  /** When somebody last asked. */
  usedAt(): number
  /** Nobody has asked for long. */
  onIdle(): void
  /** There are fewer. */
  onLeft(): void
  /** One could not be closed. */
  onFailure(error: unknown): void
}

/** Items that wait for their use, the oldest first, and those that are on their way out. */
export class PoolShelf<Item extends PoolItem> {
  readonly #order: ShelfOrder
  #resting: Resting<Item>[] = []
  /** Being closed, or not closed when they should have been. */
  readonly #leaving = new Set<Item>()
  readonly #closings = new Set<Promise<void>>()
  #tending: Deadline | undefined

  constructor(order: ShelfOrder) {
    this.#order = order
  }

  get count(): number {
    return this.#resting.length
  }

  /** Those that are as ready as they get. */
  get ready(): number {
    return this.#resting.filter(({ isReady }) => isReady).length
  }

  get leaving(): number {
    return this.#leaving.size
  }

  /** Settles when it is as ready as it gets. */
  async put(item: Item): Promise<void> {
    const resting = { item, since: performance.now(), isReady: false }
    this.#resting.push(resting)
    void item.ended.then(() => this.#discard(resting))
    this.#tend()
    await item.rest()
    resting.isReady = true
  }

  /** One that is nobody's but the caller's from then on. */
  pick(): Item | undefined {
    for (let next = this.#resting.shift(); next; next = this.#resting.shift()) {
      if (next.item.isAlive) return next.item
      void this.leave(next.item).catch(() => undefined)
    }
    return undefined
  }

  /** Undefined when none waits. */
  dropOldest(): Promise<void> | undefined {
    const oldest = this.#resting[0]
    return oldest && this.#discard(oldest)
  }

  async drop(isStale: (item: Item) => boolean): Promise<void> {
    await Promise.all(this.#resting.filter(({ item }) => isStale(item)).map((each) => this.#discard(each)))
  }

  /** Settles when one that is being closed is, or is not; undefined when none is. */
  get nextLeft(): Promise<void> | undefined {
    return this.#closings.size === 0 ? undefined : Promise.race(this.#closings).catch(() => undefined)
  }

  /** Settles when none waits, nor is on its way out, whoever sent it there. */
  async empty(): Promise<void> {
    await this.drop(() => true)
    while (this.#closings.size > 0) await Promise.allSettled(this.#closings)
  }

  /** What is not closed keeps its place, and is told of. */
  async leave(item: Item): Promise<void> {
    const closing = this.#close(item)
    this.#closings.add(closing)
    await closing.finally(() => this.#closings.delete(closing))
  }

  async #close(item: Item): Promise<void> {
    this.#leaving.add(item)
    try {
      await item.close()
      this.#leaving.delete(item)
    } catch (error) {
      this.#order.onFailure(error)
      throw error
    } finally {
      this.#order.onLeft()
    }
  }

  /** Settles when all are closed that can be. */
  async clear(): Promise<PromiseSettledResult<void>[]> {
    this.#tending?.cancel()
    const all = [...this.#leaving, ...this.#resting.map(({ item }) => item)]
    this.#resting = []
    return Promise.allSettled(all.map((item) => this.leave(item)))
  }

  async #discard(resting: Resting<Item>): Promise<void> {
    if (!this.#resting.includes(resting)) return
    this.#resting = this.#resting.filter((each) => each !== resting)
    await this.leave(resting.item).catch(() => undefined)
  }

  /** Wakes when the next of them has waited for too long, or nobody has asked for long. */
  #tend(): void {
    this.#tending?.cancel()
    const [oldest] = this.#resting
    if (!oldest) return
    const { recycleAfterMs, idleAfterMs = Infinity } = this.#order
    const dueMs = Math.min(oldest.since + recycleAfterMs, this.#order.usedAt() + idleAfterMs) - performance.now()
    this.#tending = new Deadline(Math.max(1, dueMs), () => this.#refresh())
  }

  #refresh(): void {
    const { recycleAfterMs, idleAfterMs = Infinity } = this.#order
    const now = performance.now()
    if (now - this.#order.usedAt() >= idleAfterMs) this.#order.onIdle()
    else for (const each of this.#resting) if (now - each.since >= recycleAfterMs) void this.#discard(each)
    this.#tend()
  }
}
