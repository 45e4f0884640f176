import { containmentGroups } from '../conformance/index.js'
import { type CaseReport, cellOf, type CheckReport, type Column, columnsOf, type DriverReport, type VerifyReport } from '../verify/index.js'
import { asTyped, type Colors, escapeControls } from './print.js'
import { durationInWords } from './words.js'
import { wrap } from './wrap.js'

export interface Shown {
  readonly colors: Colors
  /** Of the terminal; 100 where there is none. */
  readonly columns?: number | undefined
  readonly isQuiet: boolean
}

const labelWidth = 12
const cellWidth = 6

/** The whole report for a terminal: the matrix, what did not hold, what was not asked and why, and the sum. */
export function describeVerification(report: VerifyReport, shown: Shown): string {
  const { colors, isQuiet } = shown
  const failures = report.cases.flatMap((each) => describeFailures(each, colors))
  const parts = isQuiet ? failures : [head(report, colors), ...matrix(report, shown), ...failures, ...notAsked(report, colors), summary(report, colors)]
  return parts.length === 0 ? '' : `${parts.join('\n\n')}\n`
}

function head({ version, host }: VerifyReport, colors: Colors): string {
  return wrap(`${colors.bold(`glovebox ${version} verify`)}  ${host.system}, as ${host.uid === 0 ? 'root' : `user ${String(host.uid)}`}`, 2)
}

/** Groups below each other, drivers beside each other, and in each of these a guest's places; as many drivers in a row as the terminal has room for. */
function matrix(report: VerifyReport, { colors, columns = 100 }: Shown): string[] {
  const drivers = new Map<string, Column[]>()
  for (const column of columnsOf(report)) {
    if (column.place !== undefined) drivers.set(column.driver, [...(drivers.get(column.driver) ?? []), column])
  }
  const blocks = [...drivers.values()].map((own) => own.concat())
  const whole = columnsOf(report).filter(({ place }) => place === undefined)
  if (whole.length > 0) blocks.push(whole)
  const perBlock = Math.max(cellWidth * 3, Math.min(columns, 100) - labelWidth - 2)
  return inRows(blocks, perBlock).map((row) => renderBlock(report, row, colors))
}

function inRows(blocks: readonly (readonly Column[])[], room: number): Column[][] {
  const rows: Column[][] = []
  for (const block of blocks) {
    const last = rows.at(-1)
    if (last && (last.length + block.length) * cellWidth <= room) last.push(...block)
    else rows.push([...block])
  }
  return rows
}

function renderBlock(report: VerifyReport, columns: readonly Column[], colors: Colors): string {
  const groups = containmentGroups.filter((group) => columns.some((column) => total(cellOf(report, group, column)) > 0))
  const tops = columns.map(({ driver, place }, at) => (place !== undefined && columns[at - 1]?.driver === driver ? undefined : driver))
  const rows = groups.map((group) =>
    line(
      group,
      columns.map((column) => mark(cellOf(report, group, column), colors)),
    ),
  )
  return [
    topLine(tops, columns, colors),
    line(
      '',
      columns.map(({ place = '' }) => [place, colors.dim]),
    ),
    ...rows,
  ].join('\n')
}

/** A driver's name stands above all of its places. */
function topLine(tops: readonly (string | undefined)[], columns: readonly Column[], colors: Colors): string {
  let text = ' '.repeat(labelWidth)
  tops.forEach((top, at) => {
    if (top === undefined) return
    const width = columns.filter(({ driver, place }) => driver === top && (place !== undefined || driver === columns[at]?.driver)).length * cellWidth
    text += top.slice(0, width - 1).padEnd(width)
  })
  return colors.bold(text.trimEnd())
}

type Painted = readonly [text: string, paint: (text: string) => string]

function line(label: string, cells: readonly Painted[]): string {
  return `${label.padEnd(labelWidth)}${cells.map(([text, paint]) => paint(text.padEnd(cellWidth))).join('')}`.trimEnd()
}

function total({ held, failed, skipped }: ReturnType<typeof cellOf>): number {
  return held + failed + skipped
}

function mark(cell: ReturnType<typeof cellOf>, colors: Colors): Painted {
  if (cell.failed > 0) return [`✗ ${cell.failed}`, colors.red]
  if (cell.held > 0) return [`✓ ${cell.held}`, colors.green]
  return ['–', colors.dim]
}

function where({ driver, place }: Pick<CheckReport, 'driver' | 'place'>): string {
  return place === undefined ? driver : `${driver}, ${place === 'liner' ? 'in a liner' : `as ${place}`}`
}

/** Once for everywhere that the same was seen. */
function describeFailures(each: CaseReport, colors: Colors): string[] {
  const seen = new Map<string, CheckReport[]>()
  for (const check of each.results) {
    if (check.verdict === 'failed') seen.set(check.reason + check.observed, [...(seen.get(check.reason + check.observed) ?? []), check])
  }
  return [...seen.values()].map((checks) => describeFailure(each, checks, colors))
}

function describeFailure({ id, name, tries, means, threats }: CaseReport, checks: readonly CheckReport[], colors: Colors): string {
  const row = (label: string, text: string): string => `  ${colors.dim(label.padEnd(9))} ${wrap(escapeControls(text), 12)}`
  const [first] = checks
  return [
    `${colors.red('✗')} ${colors.bold(id)}`,
    row('where', checks.map(where).join('; ')),
    row('promise', name),
    row('tried', tries),
    row('wanted', first?.reason ?? ''),
    row('observed', first?.observed ?? ''),
    row('means', means),
    row('threats', threats.join(' ')),
  ].join('\n')
}

/** What was not asked, once for each reason. */
function notAsked({ drivers, cases }: VerifyReport, colors: Colors): string[] {
  const lines = [...drivers.flatMap(absence), ...skips(cases)].map((text) => `  ${wrap(escapeControls(asTyped(text)), 4)}`)
  return lines.length === 0 ? [] : [[colors.bold('not asked'), ...lines].join('\n')]
}

function absence({ driver, why, hint, places }: DriverReport): string[] {
  if (why !== undefined) return [`${driver}: ${why}${hint === undefined ? '' : ` (${hint})`}`]
  return Object.entries(places).flatMap(([place, { why: lack }]) => (lack === undefined ? [] : [`${driver}, ${place}: ${lack}`]))
}

function skips(cases: readonly CaseReport[]): string[] {
  const byReason = new Map<string, string[]>()
  for (const { id, results } of cases) {
    for (const { driver, verdict, reason } of results) {
      if (verdict !== 'skipped') continue
      const key = `${driver}: ${reason}`
      const ids = byReason.get(key) ?? []
      byReason.set(key, ids.includes(id) ? ids : [...ids, id])
    }
  }
  return [...byReason].map(([reason, ids]) => `${reason} – ${ids.length > 4 ? `${ids.slice(0, 3).join(', ')} and ${ids.length - 3} more` : ids.join(', ')}`)
}

function summary({ counts, durationMs, ok }: VerifyReport, colors: Colors): string {
  const { cases, checks, held, failed, skipped } = counts
  const verdict = failed > 0 ? colors.red(`✗ ${failed} did not hold.`) : ok ? colors.green('✓ Everything held.') : colors.red('✗ Nothing could be asked.')
  return `${verdict}  ${cases} cases, ${checks} checks: ${held} held, ${failed} failed, ${skipped} skipped, in ${durationInWords(durationMs)}`
}
