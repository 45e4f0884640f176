import { amount } from './markdown.js'
import type { Report, Row } from './report.js'

const shown = ['cold', 'one-shot']

/** The few lines that a first page has room for: what each way takes of a plain spawn, the quickest first. */
export function renderSummary({ environment, tables }: Report): string {
  const rows = distinctRows(tables.filter(({ section }) => shown.includes(section)).flatMap((table) => table.rows))
  const lines = rows.map(
    ({ name, p50, p95, ratio = 1 }) => `| ${name.startsWith('glovebox') ? `**${name}**` : name} | ${amount(ratio)} | ${amount(p50)} | ${amount(p95)} |`,
  )
  const where = `${environment.cores} cores, ${environment.memoryGiB} GiB, Linux ${environment.kernel}, Node ${environment.node}, ${String(environment.date).slice(0, 10)}`
  return ['| hello in Python, output in hand | of a plain spawn | p50 ms | p95 ms |', '|---|---|---|---|', ...lines, '', `(${where}.)`, ''].join('\n')
}

/** The plain spawn is measured in each section; one line of it is enough. */
export function distinctRows(rows: readonly Row[]): readonly Row[] {
  const seen = new Set<string>()
  const distinct = rows.filter(({ name, ratio }) => ratio !== undefined && ratio > 0 && !seen.has(name) && seen.add(name))
  return distinct.sort((one, other) => (one.ratio ?? 1) - (other.ratio ?? 1))
}
