/** How the content of one file differs, as a page of changes shows it. */
import type { ChangeSet, ChangeStore, PendingChange } from '../contract/changes.js'
import { textOf } from '../contract/path-text.js'
import { clipped } from './page-bounds.js'
import { type Colors, escapeControls } from './print.js'
import { unifiedDiff } from './unified-diff.js'

/** Larger files are told by their size alone. */
const mostTextBytes = 256 * 1024
const bounds = { mostLines: 20_000, mostEdits: 1000 }

export interface ContentOrder {
  readonly set: ChangeSet
  readonly store: Pick<ChangeStore, 'newContent' | 'oldContent'>
  readonly change: PendingChange
  readonly colors: Colors
  /** Shared by all that are compared with it. */
  readonly work: { steps: number }
  /** Of one line. */
  readonly mostCharacters: number
}

/** Whether there is any content to compare. */
export function isOfContent({ before, after }: PendingChange): boolean {
  if (before.type === 'file' && after.type === 'file') return before.hash !== after.hash
  return before.type === 'file' || after.type === 'file'
}

export async function contentDifference(order: ContentOrder): Promise<{ readonly lines: string[]; readonly bytesRead: number }> {
  const { set, store, change, colors, mostCharacters } = order
  const { path, before, after } = change
  const isLarge = [before, after].some((state) => state.type === 'file' && state.size > mostTextBytes)
  const name = escapeControls(clipped(path, mostCharacters))
  const header = [
    '',
    colors.bold(`--- ${before.type === 'file' ? `a/${name}` : '/dev/null'}`),
    colors.bold(`+++ ${after.type === 'file' ? `b/${name}` : '/dev/null'}`),
  ]
  if (isLarge) return { lines: [...header, colors.dim(notShown)], bytesRead: 0 }
  const old = before.type === 'file' ? await store.oldContent(set, change, mostTextBytes + 1) : new Uint8Array()
  const now = after.type === 'file' ? await store.newContent(set, change, mostTextBytes + 1) : new Uint8Array()
  const bytesRead = (old?.length ?? 0) + now.length
  if (old === undefined) return { lines: [...header, colors.dim('what was there is not there any more')], bytesRead }
  const hunks = hunksOf(old, now, order)
  return { lines: hunks.length === 0 ? [] : [...header, ...hunks], bytesRead }
}

const notShown = 'binary, or too large to show'

function hunksOf(old: Uint8Array, now: Uint8Array, { colors, work, mostCharacters }: ContentOrder): string[] {
  const [oldText, newText] = [shownText(old), shownText(now)]
  if (oldText === undefined || newText === undefined) return [colors.dim(notShown)]
  const hunks = unifiedDiff(oldText, newText, { ...bounds, work })
  return hunks === undefined ? [colors.dim('too different to show')] : hunks.map((line) => painted(clipped(line, mostCharacters), colors))
}

/** Undefined for what is no text, or too much of it. */
function shownText(bytes: Uint8Array): string | undefined {
  return bytes.length > mostTextBytes || bytes.includes(0) ? undefined : textOf(bytes)
}

/** A tab is a tab; nothing else of a stranger's text acts on a terminal. */
function painted(line: string, colors: Colors): string {
  const safe = line.split('\t').map(escapeControls).join('\t')
  if (line.startsWith('+')) return colors.green(safe)
  if (line.startsWith('-')) return colors.red(safe)
  return line.startsWith('@@') ? colors.cyan(safe) : safe
}
