import type { CellUsage } from '../contract/driver.js'
import type { SandboxUsage } from '../contract/platform.js'
import type { ReceiptRun } from '../contract/receipt.js'
import type { Ending, LimitHits, Usage } from '../contract/run.js'
import { hitsOf, nothingUsed, rounded } from './usage.js'

/** Of the runs that are over, the latest are kept one by one, and all that are not; all are counted. */
const mostEnded = 100

type RunFacts = Pick<ReceiptRun, 'commandHash' | 'user' | 'environment' | 'posture'>

/** A run on the books. */
export interface LedgerEntry extends RunFacts {
  readonly number: number
  readonly startedAt: string
  begunAhead?: true
  ending?: Pick<Ending, 'outcome' | 'usage'>
  /** What it used so far of what the engine itself counts. */
  soFar: () => Pick<Usage, 'wallMs' | 'outputBytes'>
}

/** What was run in a sandbox, and what it all used. */
export class Ledger {
  /** In the order in which they were started. */
  readonly #listed: LedgerEntry[] = []
  readonly #open = new Set<LedgerEntry>()
  #count = 0
  #dropped = 0
  #finished: Usage = nothingUsed
  /** What the cells that are gone had counted. */
  #past: CellUsage | undefined

  begin(facts: RunFacts): LedgerEntry {
    this.#count += 1
    const begunAt = performance.now()
    const soFar = (): Pick<Usage, 'wallMs' | 'outputBytes'> => ({ wallMs: performance.now() - begunAt, outputBytes: 0 })
    const entry: LedgerEntry = { ...facts, number: this.#count, startedAt: new Date().toISOString(), soFar }
    this.#listed.push(entry)
    this.#open.add(entry)
    return entry
  }

  finish(entry: LedgerEntry, ending: Ending): void {
    if (!this.#open.delete(entry)) return
    entry.ending = ending
    // What counted it until now would keep the whole program.
    entry.soFar = () => ending.usage
    this.#finished = sumOf(this.#finished, ending.usage)
    if (this.#listed.length - this.#open.size > mostEnded) this.#unlist(this.#listed.findIndex((each) => each.ending))
  }

  /** A run that never came about, through no fault of its program, is none. */
  drop(entry: LedgerEntry): void {
    if (!this.#open.delete(entry)) return
    this.#dropped += 1
    this.#unlist(this.#listed.indexOf(entry))
  }

  /** In the order in which they were started. */
  get runs(): ReceiptRun[] {
    return this.#listed.map(({ ending, soFar: _, ...facts }) => ({ ...facts, ...(ending && { outcome: { ...ending.outcome }, usage: ending.usage }) }))
  }

  #unlist(at: number): void {
    this.#listed.splice(at, 1)
  }

  /** The cell is gone; another may follow. */
  leave(cell: CellUsage): void {
    this.#past = { ...together(this.#past, cell), memoryBytes: 0, processes: 0 }
  }

  /** Without a cell, what there was. */
  usage(now?: CellUsage): SandboxUsage {
    const cell = now ? together(this.#past, now) : (this.#past ?? nothingCounted)
    const total = [...this.#open].reduce((sum, entry) => sumOf(sum, { ...nothingUsed, ...entry.soFar() }), this.#finished)
    const { memory, processes } = hitsOf(cell)
    return {
      wallMs: rounded(total.wallMs),
      cpuMs: rounded(cell.cpuMs ?? total.cpuUserMs + total.cpuSystemMs),
      memoryBytes: cell.memoryBytes ?? null,
      memoryPeakBytes: Math.max(cell.memoryPeakBytes ?? 0, total.memoryPeakBytes),
      processes: cell.processes ?? null,
      processesPeak: maxOf(cell.processesPeak ?? null, total.processesPeak),
      diskBytes: now?.diskBytes ?? null,
      readBytes: total.readBytes,
      writtenBytes: total.writtenBytes,
      outputBytes: total.outputBytes,
      runs: this.#count - this.#dropped,
      hits: { memory: memory ?? total.hits.memory, processes: processes ?? total.hits.processes },
    }
  }
}

const nothingCounted: CellUsage = {
  cpuMs: undefined,
  memoryPeakBytes: undefined,
  processesPeak: undefined,
  memoryBytes: undefined,
  processes: undefined,
  hits: { memory: undefined, processes: undefined },
}

/** Of one cell after another. */
function together(past: CellUsage | undefined, now: CellUsage): CellUsage {
  if (past === undefined) return now
  const known = (values: readonly (number | undefined)[]): number[] => values.filter((value) => value !== undefined)
  const sum = (...values: (number | undefined)[]): number | undefined =>
    known(values).length === 0 ? undefined : known(values).reduce((one, two) => one + two)
  const most = (...values: (number | undefined)[]): number | undefined => (known(values).length === 0 ? undefined : Math.max(...known(values)))
  return {
    ...now,
    cpuMs: sum(past.cpuMs, now.cpuMs),
    memoryPeakBytes: most(past.memoryPeakBytes, now.memoryPeakBytes),
    processesPeak: most(past.processesPeak, now.processesPeak),
    hits: { memory: sum(past.hits.memory, now.hits.memory), processes: sum(past.hits.processes, now.hits.processes) },
  }
}

function sumOf(one: Usage, other: Usage): Usage {
  return {
    wallMs: one.wallMs + other.wallMs,
    cpuUserMs: one.cpuUserMs + other.cpuUserMs,
    cpuSystemMs: one.cpuSystemMs + other.cpuSystemMs,
    memoryPeakBytes: Math.max(one.memoryPeakBytes, other.memoryPeakBytes),
    processesPeak: maxOf(one.processesPeak, other.processesPeak),
    readBytes: one.readBytes + other.readBytes,
    writtenBytes: one.writtenBytes + other.writtenBytes,
    outputBytes: one.outputBytes + other.outputBytes,
    hits: sumOfHits(one.hits, other.hits),
  }
}

function sumOfHits(one: LimitHits, other: LimitHits): LimitHits {
  const sum = (name: keyof LimitHits): number | null => (one[name] === null ? other[name] : one[name] + (other[name] ?? 0))
  return { memory: sum('memory'), processes: sum('processes') }
}

function maxOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other)
}
