import type { Goal, Row } from './report.js'

/** What was measured, or why it could not be: `ours` failed, or what it is compared with is not here. */
export type Measured = number | { readonly failed: string } | { readonly absent: string }

export function atMost(text: string, measured: Measured, most: number): Goal {
  return judge(text, measured, (value) => value <= most)
}

export function atLeast(text: string, measured: Measured, least: number): Goal {
  return judge(text, measured, (value) => value >= least)
}

function judge(text: string, measured: Measured, holds: (value: number) => boolean): Goal {
  // A figure that is none, such as 0/0, fulfils nothing.
  if (typeof measured === 'number') return { text, measured, state: holds(measured) ? 'met' : 'missed' }
  if ('failed' in measured) return { text, state: 'missed', why: measured.failed }
  return { text, state: 'unmeasured', why: measured.absent }
}

interface Compared {
  readonly rows: readonly Row[]
  /** Names of rows. What is ours and has no row has failed; what it is compared with and has none is absent. */
  readonly ours: string
  readonly beside: string
  readonly at?: 'p50' | 'p95'
}

/** How much of the other's median ours takes; `at: 'p95'` compares the 95th percentiles. */
export function ratioOf({ rows, ours, beside, at = 'p50' }: Compared): Measured {
  const own = rows.find(({ name }) => name === ours)
  const other = rows.find(({ name }) => name === beside)
  if (own === undefined) return { failed: `${ours} was not measured` }
  if (other === undefined) return { absent: `${beside} was not measured` }
  return own[at] / other[at]
}
