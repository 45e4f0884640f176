/** What the process itself takes: memory, processor time, descriptors, and how late its event loop is. */
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import type { Registry, Sample } from './registry.js'

export interface ProcessMeterOptions {
  /** How many descriptors are open; undefined where nobody can tell. */
  readonly openDescriptors: () => number | undefined
}

/** A lag is that of a time that is over, so that two who read it see the same. */
const windowMs = 10_000
/** A timer of the process is asked for so often; what it is late by is the lag. */
const resolutionMs = 10
const quantiles = [0.5, 0.99, 1]
const perSecond = 1e9

export function meterProcess(registry: Registry, { openDescriptors }: ProcessMeterOptions): Disposable {
  const lag = new LagWindow()
  const plain = (name: string, help: string, read: () => number | undefined): void => void registry.gauge({ name, help, read: () => samplesOf(read()) })
  plain('process_resident_memory_bytes', 'Memory of this process that is resident.', () => process.memoryUsage.rss())
  plain('nodejs_heap_used_bytes', 'Of the JavaScript heap of this process, what is used.', () => process.memoryUsage().heapUsed)
  plain('process_open_fds', 'Descriptors that this process has open.', openDescriptors)
  plain('process_start_time_seconds', 'When this process was started, in seconds since 1970.', () => Math.round(performance.timeOrigin / 1000))
  registry.counter({
    name: 'process_cpu_seconds',
    help: 'Processor time of this process so far, its sandboxes apart.',
    read: () => samplesOf(processorSeconds()),
  })
  registry.gauge({
    name: 'glovebox_event_loop_lag_seconds',
    help: 'How late the event loop was within the latest ten seconds.',
    labels: ['quantile'],
    read: () => lag.samples,
  })
  return lag
}

function processorSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

function samplesOf(value: number | undefined): readonly Sample[] {
  return value === undefined ? [] : [{ labels: {}, value }]
}

class LagWindow implements Disposable {
  readonly #histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs })
  readonly #timer: NodeJS.Timeout
  samples: readonly Sample[] = []

  constructor() {
    this.#histogram.enable()
    this.#timer = setInterval(() => this.#turn(), windowMs).unref()
    this.#turn()
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#histogram.disable()
  }

  #turn(): void {
    this.samples = quantiles.map((quantile) => ({ labels: { quantile: String(quantile) }, value: this.#at(quantile) }))
    this.#histogram.reset()
  }

  #at(quantile: number): number {
    if (this.#histogram.count === 0) return 0
    const seconds = this.#histogram.percentile(quantile * 100) / perSecond
    return Math.max(0, seconds - resolutionMs / 1000)
  }
}
