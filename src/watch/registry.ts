/**
 * Counters, gauges and histograms, as Prometheus reads them. How many series one of them has is bounded here and nowhere else: labels are few and their values come from
 * vocabularies of ours, and what comes after the last that there is room for is counted under `other`, so that nobody fills the memory of whoever reads it.
 */

export type Labels = Readonly<Record<string, string>>

export interface InstrumentOrder {
  /** Without `_total`, which counters get where they are read. */
  readonly name: string
  readonly help: string
  /** In the order in which they are written. */
  readonly labels?: readonly string[]
  /** So many series at most; 200 when not given. */
  readonly most?: number
}

export interface HistogramOrder extends InstrumentOrder {
  /** Upper bounds, ascending. */
  readonly buckets: readonly number[]
}

export interface Sample {
  readonly labels: Labels
  readonly value: number
}

export interface HistogramSample {
  readonly labels: Labels
  /** Those up to each bound, and all, the last. */
  readonly cumulated: readonly number[]
  readonly sum: number
}

export type Family = { readonly name: string; readonly help: string } & (
  | { readonly type: 'counter' | 'gauge'; readonly samples: readonly Sample[] }
  | { readonly type: 'histogram'; readonly buckets: readonly number[]; readonly samples: readonly HistogramSample[] }
)

interface Instrument {
  readonly name: string
  read(): Family
}

const usualMost = 200
const namePattern = /^[a-z][a-z0-9_]*$/

/** The values of one instrument, one a combination of its labels. */
class Series<Value> {
  readonly #values = new Map<string, { readonly labels: Labels; readonly value: Value }>()
  readonly #order: InstrumentOrder
  readonly #create: () => Value

  constructor(order: InstrumentOrder, create: () => Value) {
    this.#order = order
    this.#create = create
  }

  get all(): readonly { readonly labels: Labels; readonly value: Value }[] {
    return [...this.#values.values()]
  }

  at(labels: Labels): Value {
    const { labels: names = [], most = usualMost } = this.#order
    const key = names.map((name) => labels[name] ?? '').join('\n')
    const known = this.#values.get(key)
    if (known) return known.value
    // The last place is that of everything else.
    if (this.#values.size >= most - 1 && !isOther(names, labels)) return this.at(otherLabels(names))
    const made = { labels: Object.fromEntries(names.map((name) => [name, labels[name] ?? ''])), value: this.#create() }
    this.#values.set(key, made)
    return made.value
  }
}

function otherLabels(names: readonly string[]): Labels {
  return Object.fromEntries(names.map((name) => [name, 'other']))
}

function isOther(names: readonly string[], labels: Labels): boolean {
  return names.every((name) => labels[name] === 'other')
}

const none: Labels = {}

/** What is read from elsewhere whenever it is wanted, instead of being kept here. */
interface Readable {
  readonly read?: () => readonly Sample[]
}

export class Counter implements Instrument {
  readonly name: string
  readonly #order: InstrumentOrder & Readable
  readonly #series: Series<{ count: number }>

  constructor(order: InstrumentOrder & Readable) {
    this.name = order.name
    this.#order = order
    this.#series = new Series(order, () => ({ count: 0 }))
  }

  add(labels: Labels = none, by = 1): void {
    if (by > 0) this.#series.at(labels).count += by
  }

  read(): Family {
    const kept = this.#series.all.map(({ labels, value }) => ({ labels, value: value.count }))
    return { name: this.name, help: this.#order.help, type: 'counter', samples: this.#order.read?.() ?? kept }
  }
}

export class Gauge implements Instrument {
  readonly name: string
  readonly #order: InstrumentOrder & Readable
  readonly #series: Series<{ now: number }>

  constructor(order: InstrumentOrder & Readable) {
    this.name = order.name
    this.#order = order
    this.#series = new Series(order, () => ({ now: 0 }))
  }

  set(value: number, labels: Labels = none): void {
    this.#series.at(labels).now = value
  }

  add(by: number, labels: Labels = none): void {
    this.#series.at(labels).now += by
  }

  read(): Family {
    const kept = this.#series.all.map(({ labels, value }) => ({ labels, value: value.now }))
    return { name: this.name, help: this.#order.help, type: 'gauge', samples: this.#order.read?.() ?? kept }
  }
}

export class Histogram implements Instrument {
  readonly name: string
  readonly #order: HistogramOrder
  readonly #series: Series<{ readonly counts: number[]; sum: number }>

  constructor(order: HistogramOrder) {
    this.name = order.name
    this.#order = order
    this.#series = new Series(order, () => ({ counts: Array<number>(order.buckets.length + 1).fill(0), sum: 0 }))
  }

  observe(value: number, labels: Labels = none): void {
    const series = this.#series.at(labels)
    const place = this.#order.buckets.findIndex((bound) => value <= bound)
    const index = place === -1 ? this.#order.buckets.length : place
    series.counts[index] = (series.counts[index] ?? 0) + 1
    series.sum += value
  }

  read(): Family {
    const { help, buckets } = this.#order
    const samples = this.#series.all.map(({ labels, value }) => ({ labels, cumulated: cumulate(value.counts), sum: value.sum }))
    return { name: this.name, help, type: 'histogram', buckets, samples }
  }
}

function cumulate(counts: readonly number[]): readonly number[] {
  let sum = 0
  return counts.map((count) => (sum += count))
}

export class Registry {
  readonly #instruments = new Map<string, Instrument>()

  counter(order: InstrumentOrder & Readable): Counter {
    return this.#add(new Counter(order))
  }

  gauge(order: InstrumentOrder & Readable): Gauge {
    return this.#add(new Gauge(order))
  }

  histogram(order: HistogramOrder): Histogram {
    return this.#add(new Histogram(order))
  }

  /** By name. */
  read(): readonly Family[] {
    return [...this.#instruments.values()].map((instrument) => instrument.read()).sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  #add<Made extends Instrument>(instrument: Made): Made {
    const { name } = instrument
    if (!namePattern.test(name) || this.#instruments.has(name)) throw new Error(`${name} is taken, or no name of a metric`)
    this.#instruments.set(name, instrument)
    return instrument
  }
}
