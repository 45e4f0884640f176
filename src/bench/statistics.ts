import type { Row } from './report.js'

/** The sample below which a share of all lie, as one that was really taken; none of an empty list. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}

export function summarise(name: string, samplesMs: readonly number[]): Row {
  const sorted = [...samplesMs].sort((one, other) => one - other)
  return { name, samples: sorted.length, p50: percentile(sorted, 0.5), p95: percentile(sorted, 0.95), p99: percentile(sorted, 0.99) }
}

/** Adds the ratio of each median to that of the first. */
export function withRatios(rows: readonly Row[]): readonly Row[] {
  const [first] = rows
  return first === undefined ? [] : rows.map((row) => ({ ...row, ratio: row.p50 / first.p50 }))
}
