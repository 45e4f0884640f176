import type { Goal, Report, Table } from './report.js'

export function renderMarkdown({ environment, tables }: Report): string {
  const facts = Object.entries(environment).map(([key, value]) => `- ${key}: ${value}`)
  return `${['# Benchmark', '', ...facts, ...tables.flatMap((table) => ['', ...renderTable(table)])].join('\n')}\n`
}

export function renderTable({ title, rows, figures, missing, goals }: Table): readonly string[] {
  const timed = rows.map(
    ({ name, p50, p95, p99, ratio }) => `| ${name} | ${[p50, p95, p99].map(amount).join(' | ')} | ${ratio === undefined ? '' : amount(ratio)} |`,
  )
  return [
    `## ${title}`,
    ...block(['| what | p50 ms | p95 ms | p99 ms | ratio |', '|---|---|---|---|---|'], timed),
    ...block(
      ['| what | measured |', '|---|---|'],
      figures.map(({ name, value, unit }) => `| ${name} | ${`${amount(value)} ${unit}`.trim()} |`),
    ),
    ...block(
      ['| not measured | why |', '|---|---|'],
      missing.map(({ name, why }) => `| ${name} | ${inCell(why)} |`),
    ),
    ...goals.flatMap((goal) => ['', renderGoal(goal)]),
  ]
}

function block(head: readonly string[], lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : ['', ...head, ...lines]
}

export function renderGoal({ text, state, measured, why }: Goal): string {
  const found = measured === undefined ? why : `measured ${amount(measured)}`
  return `${stateWords[state]}: ${text} — ${found}`
}

const stateWords = { met: 'met', missed: '**MISSED**', unmeasured: 'not measured' } as const

/** Three digits that count, but whole numbers as they are. */
export function amount(value: number): string {
  if (Number.isInteger(value) || value >= 1000) return value.toFixed(0)
  return value >= 100 ? value.toFixed(1) : value >= 0.1 ? value.toFixed(2) : value.toFixed(3)
}

/** What a program said may hold anything; in a table it is one cell. */
function inCell(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|')
}
