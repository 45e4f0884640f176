/** Milliseconds of one thing that was done again and again. */
export interface Row {
  readonly name: string
  readonly samples: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  /** The median beside that of the table's first row. */
  readonly ratio?: number
}

/** Anything measured that is no time of a single act: runs per second, MiB, how many are left. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
}

/** What was to be measured and could not be, and why. */
export interface Missing {
  readonly name: string
  readonly why: string
  /** It cannot be had here, which is no failure. */
  readonly isUnsupported?: true
}

export interface Goal {
  readonly text: string
  /** `unmeasured`: what it is about is not there; `why` says what. */
  readonly state: 'met' | 'missed' | 'unmeasured'
  readonly measured?: number
  readonly why?: string
}

export interface Table {
  readonly section: string
  readonly title: string
  readonly rows: readonly Row[]
  readonly figures: readonly Figure[]
  readonly missing: readonly Missing[]
  readonly goals: readonly Goal[]
}

export type Environment = Readonly<Record<string, string | number>>

export interface Report {
  readonly environment: Environment
  readonly tables: readonly Table[]
}

export function missedGoals(report: Report): readonly Goal[] {
  return report.tables.flatMap(({ goals }) => goals.filter(({ state }) => state === 'missed'))
}
