import { posix } from 'node:path'
import type { ChangeSet, ChangeStore, PathState, PendingChange } from '../contract/changes.js'
import { contentDifference, isOfContent } from './content-difference.js'
import { gitInWords, listedChanges } from './listed-changes.js'
import { clipped, type PageBounds } from './page-bounds.js'
import { asTyped, type Colors, escapeControls } from './print.js'
import { bytesInWords } from './words.js'

export interface PageOrder {
  readonly set: ChangeSet
  readonly store: Pick<ChangeStore, 'newContent' | 'oldContent'>
  readonly colors: Colors
  readonly bounds: PageBounds
  /** The command that shows what is beyond the bounds. */
  readonly more: string
  /** When it aborts, the rest is only counted. */
  readonly signal?: AbortSignal
}

/** What was changed, a line each, then how the texts differ. */
export async function* changePage(order: PageOrder): AsyncGenerator<string, void, undefined> {
  const { set, colors } = order
  const { rows, git } = listedChanges(set.changes)
  yield* listed(rows, order, (change) => changeLine(change, order))
  if (git.length > 0) yield `${colors.yellow('M')}  .git: ${gitInWords(git)}`
  yield* listed(set.skipped, order, ({ path, why }) => `${colors.yellow('!')}  ${nameOf(path, order)}  ${colors.yellow(`not taken: ${escapeControls(why)}`)}`)
  yield* differences(rows.filter(isOfContent), order)
}

function* listed<Row>(rows: readonly Row[], { bounds, colors, more }: PageOrder, line: (row: Row) => string): Generator<string, void, undefined> {
  for (const row of rows.slice(0, bounds.names)) yield line(row)
  const rest = rows.length - bounds.names
  if (rest > 0) yield colors.dim(`… and ${counted(rest, 'more name')}: ${asTyped(more)}`)
}

function nameOf(path: string, { bounds }: PageOrder): string {
  return escapeControls(clipped(path, bounds.characters))
}

export type ChangeLetter = 'A' | 'M' | 'D'

export function letterOf({ before, after }: PendingChange): ChangeLetter {
  if (before.type === 'none') return 'A'
  return after.type === 'none' ? 'D' : 'M'
}

function changeLine(change: PendingChange, order: PageOrder): string {
  const { colors } = order
  const { path, before, after } = change
  const letter = letterOf(change)
  const paint = { A: colors.green, M: colors.yellow, D: colors.red }[letter]
  const shown = after.type === 'none' ? before : after
  const name = `${nameOf(path, order)}${shown.type === 'folder' ? '/' : ''}`
  const notes = [...about(before, after, order), ...(isLeadingOut(path, after) ? [colors.yellow('leads out of the folder')] : [])]
  const stale = change.isStale === true ? [colors.yellow('changed here too while the command ran')] : []
  return `${paint(letter)}  ${name}  ${[...notes, ...stale].join(', ')}`.trimEnd()
}

function about(before: PathState, after: PathState, order: PageOrder): string[] {
  const kinds = before.type !== after.type && before.type !== 'none' && after.type !== 'none' ? [`${before.type} → ${after.type}`] : []
  const target = after.type === 'link' ? [`→ ${nameOf(after.target, order)}`] : []
  return [...kinds, ...sizes(before, after), ...target, ...modes(before, after)]
}

function sizes(before: PathState, after: PathState): string[] {
  const [old, now] = [before, after].map((state) => (state.type === 'file' ? bytesInWords(state.size) : undefined))
  if (old === undefined || now === undefined || old === now) return [now ?? old].filter((size) => size !== undefined)
  return [`${old} → ${now}`]
}

function modes(before: PathState, after: PathState): string[] {
  const isModed = (state: PathState): state is Extract<PathState, { mode: number }> => state.type === 'file' || state.type === 'folder'
  if (!isModed(after)) return []
  if (isModed(before) && before.type === after.type) return before.mode === after.mode ? [] : [`mode ${before.mode.toString(8)} → ${after.mode.toString(8)}`]
  return after.type === 'file' && (after.mode & 0o111) !== 0 ? [`mode ${after.mode.toString(8)}`] : []
}

/** Told only: it is made as it is, and whoever follows it follows it. */
function isLeadingOut(path: string, after: PathState): boolean {
  if (after.type !== 'link') return false
  const leads = posix.normalize(posix.join(posix.dirname(path), after.target))
  return after.target.startsWith('/') || leads === '..' || leads.startsWith('../')
}

async function* differences(changes: readonly PendingChange[], order: PageOrder): AsyncGenerator<string, void, undefined> {
  const { set, store, colors, bounds, signal } = order
  const left = { lines: bounds.lines, bytesRead: bounds.bytesRead, steps: bounds.steps }
  for (const [index, change] of changes.entries()) {
    const isOver = left.lines <= 0 || left.bytesRead <= 0 || signal?.aborted === true
    if (isOver) return yield moreLine(order, { lines: 0, files: changes.length - index })
    const { lines, bytesRead } = await contentDifference({ set, store, change, colors, work: left, mostCharacters: bounds.characters })
    left.bytesRead -= bytesRead
    const shown = lines.slice(0, Math.min(left.lines, bounds.linesOfFile))
    left.lines -= shown.length
    yield* shown
    const rest = lines.length - shown.length
    if (rest > 0 && left.lines <= 0) return yield moreLine(order, { lines: rest, files: changes.length - index - 1 })
    if (rest > 0) yield moreLine(order, { lines: rest, files: 0, of: nameOf(change.path, order) })
  }
}

interface Rest {
  readonly lines: number
  readonly files: number
  /** The lines of one file. */
  readonly of?: string
}

function moreLine({ colors, more }: PageOrder, { lines, files, of }: Rest): string {
  const parts = [
    ...(lines > 0 ? [`${counted(lines, 'more line')}${of === undefined ? '' : ` of ${of}`}`] : []),
    ...(files > 0 ? [counted(files, 'more file')] : []),
  ]
  return colors.dim(`… and ${parts.join(' and ')}: ${asTyped(more)}`)
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}
