import type { NetworkRecord, NetworkSummary, NetworkVerdict } from '../contract/network.js'

const mostNames = 256
const mostLatest = 10
const other = 'other'

type Counts = Record<NetworkVerdict, number>
type HostTotals = Counts & { connections: number; bytesUp: number; bytesDown: number }

/** Sums of all records, in bounded room. */
export class NetworkTally {
  readonly #byVerdict: Counts = { allowed: 0, denied: 0, failed: 0 }
  readonly #byHost = new Map<string, HostTotals>()
  readonly #byMethod = new Map<string, number>()
  readonly #byStatus = new Map<string, number>()
  #latest: NetworkRecord[] = []
  #connections = 0
  #bytesUp = 0
  #bytesDown = 0

  add(record: NetworkRecord): void {
    const { verdict, bytesUp, bytesDown, method, status } = record
    this.#connections++
    this.#bytesUp += bytesUp
    this.#bytesDown += bytesDown
    this.#byVerdict[verdict]++
    const host = this.#hostTotals(record.host)
    host.connections++
    host.bytesUp += bytesUp
    host.bytesDown += bytesDown
    host[verdict]++
    if (method !== undefined) count(this.#byMethod, method)
    if (status !== undefined) count(this.#byStatus, String(status))
    this.#latest = [...this.#latest, record].slice(-mostLatest)
  }

  #hostTotals(host: string): HostTotals {
    const key = keyIn(this.#byHost, host)
    const known = this.#byHost.get(key) ?? { connections: 0, bytesUp: 0, bytesDown: 0, allowed: 0, denied: 0, failed: 0 }
    this.#byHost.set(key, known)
    return known
  }

  /** As it is now; nothing in it changes later. */
  get summary(): NetworkSummary {
    return {
      connections: this.#connections,
      bytesUp: this.#bytesUp,
      bytesDown: this.#bytesDown,
      byVerdict: { ...this.#byVerdict },
      byHost: Object.fromEntries([...this.#byHost].map(([host, totals]) => [host, { ...totals }])),
      byMethod: Object.fromEntries(this.#byMethod),
      byStatus: Object.fromEntries(this.#byStatus),
      latest: [...this.#latest],
    }
  }
}

function count(counts: Map<string, number>, name: string): void {
  const key = keyIn(counts, name)
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

function keyIn(known: ReadonlyMap<string, unknown>, name: string): string {
  return known.has(name) || known.size < mostNames ? name : other
}
