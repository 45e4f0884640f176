import type { Stats } from 'node:fs'
import type { ChangeSet, PathState, PendingChange } from '../contract/changes.js'
import { SandboxError } from '../contract/errors.js'
import { namesIn, parentOf } from './changes-compare.js'
import type { FolderWalk } from './folder-walk.js'
import { isSameState, seePath } from './path-state.js'

/** A change that is still to be made, and what was there when that was found out. */
export interface Task {
  readonly change: PendingChange
  readonly status: Stats | undefined
}

const mostNamed = 10

/** Those at or beneath one of the paths, with the folders that they need. Throws SandboxError('not-found') for a path that names none. */
export function selectChanges({ id, changes }: ChangeSet, paths: readonly string[]): PendingChange[] {
  const isBelow = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`)
  const unknown = paths.find((path) => !changes.some((change) => isBelow(change.path, path)))
  if (unknown !== undefined) throw new SandboxError('not-found', `no change of ${unknown} is pending`, { hint: `glovebox changes ${id}` })
  const chosen = new Set(changes.filter((change) => paths.some((path) => isBelow(change.path, path))))
  const needed = new Set([...chosen].flatMap(({ path }) => foldersAbove(path)))
  // What gives way to a folder, or goes with one, belongs to it.
  const replaced = [...chosen].filter(({ before, after }) => before.type === 'folder' && after.type !== 'folder').map(({ path }) => path)
  const isNeeded = ({ path, after, before }: PendingChange): boolean =>
    (needed.has(path) && after.type === 'folder' && before.type !== 'folder') || replaced.some((folder) => isBelow(path, folder))
  return changes.filter((change) => chosen.has(change) || isNeeded(change))
}

function foldersAbove(path: string): string[] {
  const parent = parentOf(path)
  return parent === '' ? [] : [parent, ...foldersAbove(parent)]
}

/** Where an apply that was stopped may have left a path: taken away to be replaced, or a folder that does not have its mode yet. */
function isInterim(state: PathState, { before, after }: PendingChange): boolean {
  if (state.type === 'none') return before.type !== 'none' && after.type !== 'none'
  return state.type === 'folder' && (after.type === 'folder' || before.type === 'folder')
}

export interface Planning {
  readonly walk: FolderWalk
  readonly changes: readonly PendingChange[]
  /** An apply of them was stopped halfway. */
  readonly isResumed: boolean
}

/** What is left to do of these changes. Throws SandboxError('conflict') naming all that is neither as it was nor as it is to be. */
export async function planChanges({ walk, changes, isResumed }: Planning): Promise<Task[]> {
  const tasks: Task[] = []
  const conflicts: string[] = []
  const made = new Set(changes.filter(({ after }) => after.type === 'folder').map(({ path }) => path))
  for (const change of changes) {
    const { state, status } = await seePath(walk, change.path)
    if (isSameState(state, change.after)) continue
    if (change.isStale === true) conflicts.push(`${change.path} (changed while the command ran)`)
    else if (!isSameState(state, change.before) && !(isResumed && isInterim(state, change))) conflicts.push(change.path)
    else if (!(await hasPlace(walk, change.path)) && !made.has(parentOf(change.path))) conflicts.push(`${change.path} (its folder is gone, or a link)`)
    // What is there now is what it starts from.
    else tasks.push({ change: { ...change, before: state }, status })
  }
  conflicts.push(...(await strangersIn(walk, tasks)))
  if (conflicts.length > 0) throw conflictError(conflicts)
  return tasks
}

async function hasPlace(walk: FolderWalk, path: string): Promise<boolean> {
  return (await walk.stepTo(path)) !== undefined
}

/** What came into a folder that is to go. */
async function strangersIn(walk: FolderWalk, tasks: readonly Task[]): Promise<string[]> {
  const going = new Set(tasks.filter(({ change }) => change.after.type !== 'folder' && change.before.type !== 'none').map(({ change }) => change.path))
  const strangers: string[] = []
  for (const { change } of tasks) {
    if (change.before.type !== 'folder' || change.after.type === 'folder') continue
    for (const name of await namesIn(walk, change.path)) {
      const path = `${change.path}/${name}`
      if (!going.has(path)) strangers.push(path)
    }
  }
  return strangers
}

function conflictError(conflicts: readonly string[]): SandboxError {
  const named = conflicts.slice(0, mostNamed).join(', ')
  const more = conflicts.length > mostNamed ? ` and ${conflicts.length - mostNamed} more` : ''
  return new SandboxError('conflict', `nothing was applied: changed meanwhile: ${named}${more}`, { hint: 'glovebox apply -- FILE' })
}
