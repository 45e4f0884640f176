/**
 * What looks wrong about one sandbox, from what it is told of it: pure, in bounded room, and told at most once a minute of each kind. Rules are about numbers within a time, so that
 * what is told can be checked; nothing is learned but a sandbox's own history of runs.
 */
import type { Anomaly, AnomalyKind } from '../contract/anomalies.js'
import type { SandboxEvent } from '../contract/lifetimes.js'
import type { NetworkRecord } from '../contract/network.js'
import type { Usage } from '../contract/run.js'

const minuteMs = 60_000

export const anomalyBounds = {
  deniedBurst: { count: 20, withinMs: 10_000 },
  portScan: { ports: 15, withinMs: minuteMs },
  hostScan: { hosts: 30, withinMs: minuteMs },
  limitHits: { count: 5, withinMs: minuteMs },
  outputFlood: { bytes: 64 * 2 ** 20, bytesPerSecond: 8 * 2 ** 20, leastBytes: 8 * 2 ** 20 },
  unusual: { factor: 10, leastRuns: 5 },
} as const

const mostRemembered = 256
/** Less than this is nothing to speak of, however much more than usual it is. */
const floors = { cpuMs: 2000, memoryPeakBytes: 64 * 2 ** 20, writtenBytes: 64 * 2 ** 20, outputBytes: 2 ** 20 } as const
type Measure = keyof typeof floors

interface Attempt {
  readonly at: number
  readonly host: string
  readonly port: number
}

export class AnomalyDetector {
  #denied: number[] = []
  #limited: number[] = []
  #attempts: Attempt[] = []
  readonly #history = new Map<Measure, { runs: number; mean: number }>()
  readonly #toldAt = new Map<AnomalyKind, number>()

  /** An attempt at the network, whatever came of it. */
  attempt({ verdict, host, port }: Pick<NetworkRecord, 'verdict' | 'host' | 'port'>, nowMs: number): readonly Anomaly[] {
    if (verdict === 'allowed') return []
    const { deniedBurst, portScan, hostScan } = anomalyBounds
    this.#attempts = [...this.#attempts.filter(({ at }) => nowMs - at < minuteMs), { at: nowMs, host, port }].slice(-mostRemembered)
    if (verdict === 'denied') this.#denied = latest(this.#denied, { nowMs, withinMs: deniedBurst.withinMs })
    const ports = new Set(this.#attempts.filter((each) => each.host === host).map((each) => each.port)).size
    const hosts = new Set(this.#attempts.map((each) => each.host)).size
    return [
      ...this.#tell(
        'denied-burst',
        nowMs,
        this.#denied.length >= deniedBurst.count && `${this.#denied.length} connections were denied within ${deniedBurst.withinMs / 1000} s`,
      ),
      ...this.#tell('port-scan', nowMs, ports >= portScan.ports && `${ports} ports of ${host} were tried in vain within ${portScan.withinMs / 1000} s`),
      ...this.#tell('host-scan', nowMs, hosts >= hostScan.hosts && `${hosts} hosts were tried in vain within ${hostScan.withinMs / 1000} s`),
    ]
  }

  event(event: SandboxEvent, nowMs: number): readonly Anomaly[] {
    switch (event.type) {
      case 'limited':
        return this.#limitHit(event.reason, nowMs)
      case 'exit':
        return [...this.#flood(event.ending.usage, nowMs), ...this.#unusual(event.ending.usage, nowMs)]
      case 'denied':
      case 'paused':
      case 'resumed':
      case 'expired':
      case 'missed':
      case 'closed':
        return []
    }
  }

  #limitHit(reason: string, nowMs: number): readonly Anomaly[] {
    const { count, withinMs } = anomalyBounds.limitHits
    this.#limited = latest(this.#limited, { nowMs, withinMs })
    return this.#tell(
      'limit-hits',
      nowMs,
      this.#limited.length >= count && `limits were met ${this.#limited.length} times within ${withinMs / 1000} s, last: ${reason}`,
    )
  }

  #flood({ outputBytes, wallMs }: Usage, nowMs: number): readonly Anomaly[] {
    const { bytes, bytesPerSecond, leastBytes } = anomalyBounds.outputFlood
    const rate = outputBytes / Math.max(wallMs / 1000, 0.001)
    const isFlood = outputBytes >= bytes || (outputBytes >= leastBytes && rate >= bytesPerSecond)
    return this.#tell('output-flood', nowMs, isFlood && `a run printed ${mebi(outputBytes)} MiB in ${Math.round(wallMs)} ms`)
  }

  /** Against the mean of its runs before, in which what was unusual counts no more than the most that is usual: one flood must not make the next one look normal. */
  #unusual(usage: Usage, nowMs: number): readonly Anomaly[] {
    const { factor, leastRuns } = anomalyBounds.unusual
    const measured = {
      cpuMs: usage.cpuUserMs + usage.cpuSystemMs,
      memoryPeakBytes: usage.memoryPeakBytes,
      writtenBytes: usage.writtenBytes,
      outputBytes: usage.outputBytes,
    }
    return (Object.keys(floors) as Measure[]).flatMap((name) => {
      const known = this.#history.get(name) ?? { runs: 0, mean: 0 }
      const value = measured[name]
      const usual = Math.max(floors[name], known.mean * factor)
      const isUnusual = known.runs >= leastRuns && value > usual
      const counted = known.runs >= leastRuns ? Math.min(value, usual) : value
      const weight = 1 / Math.min(known.runs + 1, 20)
      this.#history.set(name, { runs: known.runs + 1, mean: known.mean + (counted - known.mean) * weight })
      return this.#tell(
        'unusual-usage',
        nowMs,
        isUnusual && `${name} of a run was ${Math.round(value)}, where its ${known.runs} runs before had ${Math.round(known.mean)} on average`,
      )
    })
  }

  #tell(kind: AnomalyKind, nowMs: number, reason: string | false): readonly Anomaly[] {
    if (reason === false || nowMs - (this.#toldAt.get(kind) ?? -Infinity) < minuteMs) return []
    this.#toldAt.set(kind, nowMs)
    return [{ kind, reason }]
  }
}

function latest(times: readonly number[], { nowMs, withinMs }: { readonly nowMs: number; readonly withinMs: number }): number[] {
  return [...times.filter((at) => nowMs - at < withinMs), nowMs].slice(-mostRemembered)
}

function mebi(bytes: number): number {
  return Math.round(bytes / 2 ** 20)
}
