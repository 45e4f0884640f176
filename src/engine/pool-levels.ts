import type { EventSink } from '../contract/events.js'
import type { PoolStatus } from '../contract/pools.js'

/** Every run changes how many wait: what is told of it is what is so after a moment. */
const momentMs = 200

/** All pools that nobody asked for are told as one. */
export const oneShotPools = 'one-shots'

const nothing: PoolStatus = { total: 0, available: 0, inUse: 0, waiting: 0 }

/** Tells how many wait in each pool, when that is not what was told before. */
export class PoolLevels {
  readonly #sink: EventSink
  readonly #read: () => ReadonlyMap<string, PoolStatus>
  readonly #told = new Map<string, PoolStatus>()
  #timer: NodeJS.Timeout | undefined

  constructor(sink: EventSink, read: () => ReadonlyMap<string, PoolStatus>) {
    this.#sink = sink
    this.#read = read
  }

  changed(): void {
    this.#timer ??= setTimeout(() => this.#look(), momentMs).unref()
  }

  #look(): void {
    this.#timer = undefined
    const now = this.#read()
    for (const [pool, status] of now) this.#tellOf(pool, status)
    for (const pool of [...this.#told.keys()].filter((each) => !now.has(each))) {
      this.#tellOf(pool, nothing)
      this.#told.delete(pool)
    }
  }

  #tellOf(pool: string, status: PoolStatus): void {
    if (isSame(this.#told.get(pool) ?? nothing, status)) return
    this.#told.set(pool, status)
    this.#sink.tell({ type: 'pool', pool, status })
  }
}

export function sumOf(statuses: readonly PoolStatus[]): PoolStatus {
  const sum = (key: Exclude<keyof PoolStatus, 'failure'>): number => statuses.reduce((all, status) => all + status[key], 0)
  const failure = statuses.find((status) => status.failure !== undefined)?.failure
  return { total: sum('total'), available: sum('available'), inUse: sum('inUse'), waiting: sum('waiting'), ...(failure !== undefined && { failure }) }
}

function isSame(a: PoolStatus, b: PoolStatus): boolean {
  return a.total === b.total && a.available === b.available && a.inUse === b.inUse && a.waiting === b.waiting && a.failure === b.failure
}
