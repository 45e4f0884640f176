import { posix } from 'node:path'
import type { ChangeSet, ChangeStore, PathState, PendingChange } from '../contract/changes.js'
import { contentDifference, isOfContent } from './content-difference.js'
import { asTyped, type Colors, escapeControls } from './print.js'
import { bytesInWords } from './words.js'

export interface PageOrder {
  readonly set: ChangeSet
  readonly store: Pick<ChangeStore, 'newContent' | 'oldContent'>
  readonly colors: Colors
  /** Only the beginning of the differences of texts, for little work; the files that are beyond are counted. */
  readonly isShort: boolean
}

/** A short page ends at so many lines of differences, or when finding them took so much. */
const shortPage = { lines: 200, bytesRead: 32 * 2 ** 20, steps: 4_000_000 }

/** What was changed, a line each, then how the texts differ. */
export async function* changePage(order: PageOrder): AsyncGenerator<string, void, undefined> {
  const { set, colors } = order
  const folders = new Set(set.changes.map(({ path }) => posix.dirname(path)))
  const shown = set.changes.filter((change) => !isOfGit(change.path) && !isImplied(change, folders))
  for (const change of shown) yield changeLine(change, colors)
  yield* gitLine(set.changes, colors)
  for (const { path, why } of set.skipped) yield `${colors.yellow('!')}  ${escapeControls(path)}  ${colors.yellow(`not taken: ${escapeControls(why)}`)}`
  yield* differences(shown.filter(isOfContent), order)
}

export type ChangeLetter = 'A' | 'M' | 'D'

export function letterOf({ before, after }: PendingChange): ChangeLetter {
  if (before.type === 'none') return 'A'
  return after.type === 'none' ? 'D' : 'M'
}

function isOfGit(path: string): boolean {
  return path === '.git' || path.startsWith('.git/')
}

function gitLine(changes: readonly PendingChange[], colors: Colors): string[] {
  const files = changes.filter(({ path, before, after }) => isOfGit(path) && ![before, after].every(({ type }) => type === 'folder' || type === 'none'))
  return files.length === 0 ? [] : [`${colors.yellow('M')}  .git: ${files.length} ${files.length === 1 ? 'file' : 'files'}`]
}

/** A folder that came or went with what is in it needs no line of its own. */
function isImplied({ path, before, after }: PendingChange, folders: ReadonlySet<string>): boolean {
  const isMade = before.type === 'none' && after.type === 'folder'
  const isGone = before.type === 'folder' && after.type === 'none'
  return (isMade || isGone) && folders.has(path)
}

function changeLine(change: PendingChange, colors: Colors): string {
  const { path, before, after } = change
  const letter = letterOf(change)
  const paint = { A: colors.green, M: colors.yellow, D: colors.red }[letter]
  const shown = after.type === 'none' ? before : after
  const name = `${escapeControls(path)}${shown.type === 'folder' ? '/' : ''}`
  const notes = [...about(before, after), ...(isLeadingOut(path, after) ? [colors.yellow('leads out of the folder')] : [])]
  const stale = change.isStale === true ? [colors.yellow('changed here too while the command ran')] : []
  return `${paint(letter)}  ${name}  ${[...notes, ...stale].join(', ')}`.trimEnd()
}

function about(before: PathState, after: PathState): string[] {
  const kinds = before.type !== after.type && before.type !== 'none' && after.type !== 'none' ? [`${before.type} → ${after.type}`] : []
  const target = after.type === 'link' ? [`→ ${escapeControls(after.target)}`] : []
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
  const { set, store, colors, isShort } = order
  const left = { ...shortPage }
  for (const [index, change] of changes.entries()) {
    const isOver = isShort && (left.lines <= 0 || left.bytesRead <= 0)
    if (isOver) return yield colors.dim(moreLine({ set, lines: 0, files: changes.length - index }))
    const { lines, bytesRead } = await contentDifference({ set, store, change, colors, ...(isShort && { work: left }) })
    left.bytesRead -= bytesRead
    const most = isShort ? left.lines : Infinity
    left.lines -= lines.length
    for (const line of lines.slice(0, most)) yield line
    if (lines.length > most) return yield colors.dim(moreLine({ set, lines: lines.length - most, files: changes.length - index - 1 }))
  }
}

function moreLine({ set, lines, files }: { readonly set: ChangeSet; readonly lines: number; readonly files: number }): string {
  const parts = [
    ...(lines > 0 ? [`${lines} more ${lines === 1 ? 'line' : 'lines'}`] : []),
    ...(files > 0 ? [`${files} more ${files === 1 ? 'file' : 'files'}`] : []),
  ]
  return `… and ${parts.join(' and ')}: ${asTyped(`glovebox changes ${set.id.slice(0, 8)}`)}`
}
