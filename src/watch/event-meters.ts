import type { PlatformEvent, PlatformEvents } from '../contract/events.js'
import type { NetworkRecord } from '../contract/network.js'
import type { PoolStatus } from '../contract/pools.js'
import type { Meters } from './meters.js'

/** Counts what happens on a platform until that is over or the signal aborts. */
export async function meterEvents(events: PlatformEvents, meters: Meters, signal?: AbortSignal): Promise<void> {
  const tally = new Tally(meters)
  try {
    for await (const event of events.listen(signal ? { signal } : {})) tally.note(event)
  } catch (error) {
    if (!signal?.aborted) throw error
  }
}

const oneShots = 'one-shots'

class Tally {
  readonly #meters: Meters
  /** Of those that live; ids stay here and are never labels. */
  readonly #fresh = new Map<string, string>()
  readonly #pools = new Map<string, PoolStatus>()

  constructor(meters: Meters) {
    this.#meters = meters
  }

  note(event: PlatformEvent): void {
    const meters = this.#meters
    meters.events.add({ type: event.type })
    switch (event.type) {
      case 'created':
        this.#fresh.set(event.sandbox, event.fresh)
        meters.live.add(1, { fresh: event.fresh })
        return
      case 'closed':
        this.#closed(event.sandbox, event.code)
        return
      case 'limited':
        meters.limits.add({ limit: event.limit })
        return
      case 'denied':
      case 'connected':
        this.#connection(event.attempt)
        return
      case 'pool':
        this.#pool(event.pool, event.status)
        return
      case 'missed':
        meters.eventsMissed.add({}, event.count ?? 1)
        return
      case 'anomaly':
        meters.anomalies.add({ kind: event.kind })
        return
      case 'quota':
        meters.quotas.add({ quota: event.quota })
        return
      case 'lost':
        meters.lost.add()
        return
      case 'exit':
      case 'paused':
      case 'resumed':
      case 'expired':
      case 'restarted':
        return
    }
  }

  #closed(sandbox: string, code: string): void {
    const fresh = this.#fresh.get(sandbox)
    this.#meters.closed.add({ code })
    if (fresh === undefined) return
    this.#fresh.delete(sandbox)
    this.#meters.live.add(-1, { fresh })
  }

  #connection({ verdict, scheme, bytesUp, bytesDown }: NetworkRecord): void {
    this.#meters.connections.add({ verdict, scheme })
    this.#meters.networkBytes.add({ direction: 'up' }, bytesUp)
    this.#meters.networkBytes.add({ direction: 'down' }, bytesDown)
  }

  #pool(pool: string, status: PoolStatus): void {
    if (status.total === 0 && status.waiting === 0) this.#pools.delete(pool)
    else this.#pools.set(pool, status)
    const kinds = { [oneShots]: [...this.#pools].filter(([id]) => id === oneShots), created: [...this.#pools].filter(([id]) => id !== oneShots) }
    for (const [kind, pools] of Object.entries(kinds)) {
      const sum = (key: 'total' | 'available' | 'inUse' | 'waiting'): number => pools.reduce((all, [, each]) => all + each[key], 0)
      for (const [state, key] of [
        ['all', 'total'],
        ['available', 'available'],
        ['in-use', 'inUse'],
      ] as const) {
        this.#meters.pools.set(sum(key), { pool: kind, state })
      }
      this.#meters.poolWaiting.set(sum('waiting'), { pool: kind })
    }
  }
}
