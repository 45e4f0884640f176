import { posix } from 'node:path'
import type { ChangeSet, ChangeStore, PathState, PendingChange } from '../contract/changes.js'
import { asTyped, type Colors, escapeControls } from './print.js'
import { unifiedDiff } from './unified-diff.js'
import { bytesInWords } from './words.js'

export interface PageOrder {
  readonly set: ChangeSet
  readonly store: Pick<ChangeStore, 'newContent' | 'oldContent'>
  readonly colors: Colors
  /** Of the differences of texts; what is beyond is counted. */
  readonly mostLines: number
}

/** Larger files are told by their size alone. */
const mostTextBytes = 256 * 1024

/** What was changed, a line each, then how the texts differ. */
export async function changePage(order: PageOrder): Promise<string[]> {
  const { set, colors } = order
  const shown = set.changes.filter((change) => !isOfGit(change.path) && !isImplied(change, set.changes))
  return [
    ...shown.map((change) => changeLine(change, colors)),
    ...gitLine(set.changes, colors),
    ...set.skipped.map(({ path, why }) => `${colors.yellow('!')}  ${escapeControls(path)}  ${colors.yellow(`not taken: ${escapeControls(why)}`)}`),
    ...(await differences(shown, order)),
  ]
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
function isImplied({ path, before, after }: PendingChange, changes: readonly PendingChange[]): boolean {
  const isMade = before.type === 'none' && after.type === 'folder'
  const isGone = before.type === 'folder' && after.type === 'none'
  return (isMade || isGone) && changes.some((other) => other.path.startsWith(`${path}/`))
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

async function differences(changes: readonly PendingChange[], order: PageOrder): Promise<string[]> {
  const { set, colors, mostLines } = order
  const lines: string[] = []
  for (const change of changes) lines.push(...(await difference(change, order)))
  if (lines.length <= mostLines) return lines
  const more = `… ${lines.length - mostLines} more lines: ${asTyped(`glovebox changes ${set.id.slice(0, 8)}`)}`
  return [...lines.slice(0, mostLines), colors.dim(more)]
}

async function difference(change: PendingChange, { set, store, colors }: PageOrder): Promise<string[]> {
  const { path, before, after } = change
  if (before.type === 'file' && after.type === 'file' && before.hash === after.hash) return []
  if (before.type !== 'file' && after.type !== 'file') return []
  const old = before.type === 'file' ? await store.oldContent(set, change, mostTextBytes + 1) : new Uint8Array()
  const now = after.type === 'file' ? await store.newContent(set, change, mostTextBytes + 1) : new Uint8Array()
  const name = escapeControls(path)
  const header = [
    '',
    colors.bold(`--- ${before.type === 'file' ? `a/${name}` : '/dev/null'}`),
    colors.bold(`+++ ${after.type === 'file' ? `b/${name}` : '/dev/null'}`),
  ]
  const [oldText, newText] = [old && textOf(old), textOf(now)]
  if (old === undefined) return [...header, colors.dim('what was there is not there any more')]
  if (oldText === undefined || newText === undefined) return [...header, colors.dim('binary, or too large to show')]
  const hunks = unifiedDiff(oldText, newText)
  return hunks === undefined
    ? [...header, colors.dim('too different to show')]
    : hunks.length === 0
      ? []
      : [...header, ...hunks.map((line) => painted(line, colors))]
}

/** Undefined for what is no text, or too much of it. */
function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.length > mostTextBytes || bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** A tab is a tab; nothing else of a stranger's text acts on a terminal. */
function painted(line: string, colors: Colors): string {
  const safe = line.split('\t').map(escapeControls).join('\t')
  if (line.startsWith('+')) return colors.green(safe)
  if (line.startsWith('-')) return colors.red(safe)
  return line.startsWith('@@') ? colors.cyan(safe) : safe
}
