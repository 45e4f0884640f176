import type { ContainmentGroup, Place, Purpose } from '../conformance/index.js'
import type { Tier } from '../contract/spec.js'

/** What was asked of this installation and what came of it: what `--json` prints, and what the pages are made from. */
export interface VerifyReport {
  readonly version: string
  /** ISO 8601. */
  readonly startedAt: string
  readonly durationMs: number
  readonly host: { readonly system: string; readonly uid: number | null }
  /** Whether all that could be asked held, and anything could. */
  readonly ok: boolean
  readonly counts: Counts
  readonly drivers: readonly DriverReport[]
  readonly cases: readonly CaseReport[]
}

export interface Counts {
  readonly cases: number
  /** One case, asked of one driver from one place. */
  readonly checks: number
  readonly held: number
  readonly failed: number
  readonly skipped: number
}

export interface DriverReport {
  readonly driver: string
  readonly tier: Tier
  /** Why nothing was asked of it; not given: it was. */
  readonly why?: string
  /** The next act, as a command, where there is one. */
  readonly hint?: string
  /** Why nothing was asked from there; not given: it was. */
  readonly places: Readonly<Record<Place, { readonly why?: string }>>
}

export interface CaseReport extends Purpose {
  readonly id: string
  readonly name: string
  readonly results: readonly CheckReport[]
}

export interface CheckReport {
  /** A driver, `server`, or `host`. */
  readonly driver: string
  /** Not given where nobody stands anywhere. */
  readonly place?: Place
  readonly verdict: 'held' | 'failed' | 'skipped'
  /** Why it was skipped, or what must have been so. */
  readonly reason: string
  readonly observed: string
  readonly ms: number
}

export function countsOf(cases: readonly CaseReport[]): Counts {
  const checks = cases.flatMap(({ results }) => results)
  const count = (verdict: CheckReport['verdict']): number => checks.filter((check) => check.verdict === verdict).length
  return { cases: cases.length, checks: checks.length, held: count('held'), failed: count('failed'), skipped: count('skipped') }
}

/** A column of the matrix. */
export interface Column {
  readonly driver: string
  readonly place?: Place
}

/** In the order of the report: each driver from each place from which anything was asked. */
export function columnsOf({ cases }: Pick<VerifyReport, 'cases'>): Column[] {
  const seen = new Map<string, Column>()
  for (const { driver, place } of cases.flatMap(({ results }) => results)) {
    seen.set(`${driver} ${place ?? ''}`, { driver, ...(place && { place }) })
  }
  return [...seen.values()]
}

export interface MatrixCell {
  readonly held: number
  readonly failed: number
  readonly skipped: number
}

/** Of one group in one column. */
export function cellOf({ cases }: Pick<VerifyReport, 'cases'>, group: ContainmentGroup, column: Column): MatrixCell {
  const verdicts = cases
    .filter((each) => each.group === group)
    .flatMap(({ results }) => results)
    .filter(({ driver, place }) => driver === column.driver && place === column.place)
    .map(({ verdict }) => verdict)
  const count = (wanted: CheckReport['verdict']): number => verdicts.filter((verdict) => verdict === wanted).length
  return { held: count('held'), failed: count('failed'), skipped: count('skipped') }
}
