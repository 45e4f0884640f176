/** Which changes have a line of their own. Whoever counts changes for a reader counts these lines. */
import { posix } from 'node:path'
import type { PathState, PendingChange } from '../contract/changes.js'

export interface ListedChanges {
  /** A line each. */
  readonly rows: readonly PendingChange[]
  /** All that is in .git, which is one line. */
  readonly git: readonly PendingChange[]
}

export function listedChanges(changes: readonly PendingChange[]): ListedChanges {
  const folders = new Set(changes.map(({ path }) => posix.dirname(path)))
  return { rows: changes.filter((change) => !isOfGit(change) && !isImplied(change, folders)), git: changes.filter(isOfGit) }
}

/** As many as there are lines, in words. */
export function changesInWords(changes: readonly PendingChange[]): string {
  const count = lineCount(changes)
  return `${count} ${count === 1 ? 'change' : 'changes'}`
}

export function lineCount(changes: readonly PendingChange[]): number {
  const { rows, git } = listedChanges(changes)
  return rows.length + (git.length > 0 ? 1 : 0)
}

/** What the line of .git tells: its files, or its folders where nothing else was changed. */
export function gitInWords(git: readonly PendingChange[]): string {
  const files = git.filter(({ before, after }) => ![before, after].every(isFolderOrNone)).length
  if (files > 0) return `${files} ${files === 1 ? 'file' : 'files'}`
  return `${git.length} ${git.length === 1 ? 'folder' : 'folders'}`
}

function isOfGit({ path }: PendingChange): boolean {
  return path === '.git' || path.startsWith('.git/')
}

function isFolderOrNone({ type }: PathState): boolean {
  return type === 'folder' || type === 'none'
}

/** A folder that came or went with what is in it needs no line of its own. */
function isImplied({ path, before, after }: PendingChange, folders: ReadonlySet<string>): boolean {
  const isMade = before.type === 'none' && after.type === 'folder'
  const isGone = before.type === 'folder' && after.type === 'none'
  return (isMade || isGone) && folders.has(path)
}
