import type { Report, Row, Table } from '../../src/bench/report.js'

export const row = (name: string, p50: number, rest: Partial<Row> = {}): Row => ({ name, samples: 3, p50, p95: p50 * 2, p99: p50 * 3, ...rest })

export const table = (rest: Partial<Table> = {}): Table => ({ section: 'cold', title: 'Cold', rows: [], figures: [], missing: [], goals: [], ...rest })

export const report = (...tables: readonly Table[]): Report => ({
  environment: { date: '2026-01-02T03:04:05.678Z', kernel: '6.1.0', cores: 2, memoryGiB: 4, node: 'v20.19.0' },
  tables,
})
