/**
 * What was written over a folder, as changes of that folder. Only what was written is looked at, and what it took the place of: a folder of any size
 * costs no more than was changed in it.
 */
import type { PathState, PendingChange, Written } from '../contract/changes.js'
import { pathText } from '../contract/path-text.js'
import type { FolderWalk } from './folder-walk.js'
import { comparedBits, isSameState, seePath, type SeenPath } from './path-state.js'

export interface Comparison {
  readonly walk: FolderWalk
  readonly written: readonly Written[]
  readonly startedMs: number
  /** Keeps the content of a file; resolves to what it holds. */
  keep(path: string): Promise<{ readonly hash: string; readonly size: number }>
  readonly signal: AbortSignal | undefined
}

const nothing: PathState = { type: 'none' }
/** Kernels stamp files with a clock that stands still for a few milliseconds. */
const clockMs = 20

export async function compareWritten(comparison: Comparison): Promise<PendingChange[]> {
  const names = childrenOf(comparison.written)
  const hiding = new Set<string>()
  const changes: PendingChange[] = []
  for (const entry of comparison.written) {
    comparison.signal?.throwIfAborted()
    if (entry.type === 'other') continue
    const before = await seePath(comparison.walk, entry.path)
    const after = await stateAfter(entry, comparison)
    if (!isSameState(before.state, after)) changes.push(changeOf(entry.path, { before, after, startedMs: comparison.startedMs }))
    if (before.state.type !== 'folder') continue
    const isHidden = entry.type !== 'folder' || entry.hides || hiding.has(parentOf(entry.path))
    if (!isHidden) continue
    hiding.add(entry.path)
    const kept = entry.type === 'folder' ? (names.get(entry.path) ?? new Set<string>()) : new Set<string>()
    changes.push(...(await removalsIn(entry.path, { comparison, kept })))
  }
  return changes.sort((one, other) => (one.path < other.path ? -1 : 1))
}

async function stateAfter(entry: Exclude<Written, { type: 'other' }>, comparison: Comparison): Promise<PathState> {
  switch (entry.type) {
    case 'removed':
      return nothing
    case 'link':
      return { type: 'link', target: entry.target }
    case 'folder':
      return { type: 'folder', mode: entry.mode & comparedBits }
    case 'file':
      // Neither set-id bits nor a sticky file: nobody asked for programs with rights of their own.
      return { type: 'file', mode: entry.mode & 0o777, ...(await comparison.keep(entry.path)) }
  }
}

interface Beside {
  readonly before: SeenPath
  readonly after: PathState
  readonly startedMs: number
}

function changeOf(path: string, { before, after, startedMs }: Beside): PendingChange {
  const isStale = before.status !== undefined && before.status.ctimeMs >= startedMs - clockMs
  return { path, before: before.state, after, ...(isStale && { isStale }) }
}

/** Everything in a folder of the source that the layer hides, but for what was made there anew, which is compared by itself. */
async function removalsIn(
  path: string,
  { comparison, kept }: { readonly comparison: Comparison; readonly kept: ReadonlySet<string> },
): Promise<PendingChange[]> {
  const { walk, startedMs, signal } = comparison
  const changes: PendingChange[] = []
  for (const name of await namesIn(walk, path)) {
    signal?.throwIfAborted()
    if (kept.has(name)) continue
    const below = `${path}/${name}`
    const before = await seePath(walk, below)
    // Removed meanwhile.
    if (before.state.type === 'none') continue
    changes.push(changeOf(below, { before, after: nothing, startedMs }))
    if (before.state.type === 'folder') changes.push(...(await removalsIn(below, { comparison, kept: new Set() })))
  }
  return changes
}

export async function namesIn(walk: FolderWalk, path: string): Promise<string[]> {
  const step = await walk.stepTo(path)
  if (step === undefined) return []
  const folder = await step.folder.enter(step.name)
  try {
    return (await folder.names()).map(pathText)
  } finally {
    await folder[Symbol.asyncDispose]()
  }
}

/** The names that the layer has in each of its folders. */
function childrenOf(written: readonly Written[]): Map<string, Set<string>> {
  const children = new Map<string, Set<string>>()
  for (const { path } of written) {
    const parent = parentOf(path)
    const names = children.get(parent) ?? new Set<string>()
    names.add(path.slice(path.lastIndexOf('/') + 1))
    children.set(parent, names)
  }
  return children
}

export function parentOf(path: string): string {
  const slash = path.lastIndexOf('/')
  return slash === -1 ? '' : path.slice(0, slash)
}
