/**
 * Moves a staged folder into one that is there: first it is looked whether all of it fits, then what comes from another file system is copied beside its place, and
 * only when all of that is whole does everything take its place. A disk that is full leaves the folder as it was.
 */
import { SandboxError } from '../contract/errors.js'
import { printable } from '../contract/printable.js'
import type { HostFolder } from './host-folder-handle.js'
import { copyBeside, type Copying, type Draft, moveEntry, placeDraft, removeDraft } from './host-folder-move.js'
import { mountOf } from './tree-removal.js'

export interface Merge {
  readonly from: HostFolder
  readonly to: HostFolder
  readonly overwrite: boolean
  readonly copying: Copying
  /** For messages: the path so far. */
  readonly below: string
}

/** Throws SandboxError('conflict') naming what is in the way. */
export async function checkMerge(merge: Merge): Promise<void> {
  const { from, to, overwrite } = merge
  for (const name of await from.names()) {
    const there = await to.look(name)
    if (!there) continue
    const isFolder = (await from.look(name))?.isDirectory() === true
    const path = `${merge.below}${name.toString()}`
    if (isFolder && there.isDirectory()) await within(merge, name, checkMerge)
    else if (!overwrite) throw new SandboxError('conflict', `download: ${printable(path)} is there already; overwrite replaces it`)
    else if (there.isDirectory()) throw new SandboxError('conflict', `download: ${printable(path)} is there already, as a folder`)
  }
}

export async function mergeFolder(merge: Merge): Promise<void> {
  const drafts: Drafts = new Map()
  const { from, to } = merge
  try {
    if (mountOf(from.descriptor) !== mountOf(to.descriptor)) await copyAll(merge, drafts)
    await placeAll(merge, drafts)
  } catch (error) {
    if (drafts.size > 0) await removeAll(merge, drafts)
    throw error
  }
}

/** What entries are called until all of them are there, by their paths. */
type Drafts = Map<string, Draft>

async function copyAll(merge: Merge, drafts: Drafts): Promise<void> {
  await eachPlace(merge, async ({ from, to, path, name }) => {
    drafts.set(path, await copyBeside({ folder: from, name }, to, merge.copying))
  })
}

async function placeAll(merge: Merge, drafts: Drafts): Promise<void> {
  await eachPlace(merge, async ({ from, to, path, name }) => {
    // A folder cannot be moved onto a file or a link.
    if ((await from.look(name))?.isDirectory() === true && (await to.look(name))) await to.unlink(name)
    const draft = drafts.get(path)
    drafts.delete(path)
    await (draft ? placeDraft(draft, { folder: to, name }) : moveEntry({ folder: from, name }, { folder: to, name }, merge.copying))
  })
}

async function removeAll(merge: Merge, drafts: Drafts): Promise<void> {
  const removing = eachPlace(merge, async ({ to, path }) => {
    const draft = drafts.get(path)
    if (draft) await removeDraft(draft, to)
  })
  await removing.catch(() => undefined)
}

interface Placing {
  readonly from: HostFolder
  readonly to: HostFolder
  readonly name: Buffer
  /** Below the folder that comes, byte for byte: two names that are no text are not one. */
  readonly path: string
}

/** Everything of it that takes a place of its own: what is not a folder both here and there. */
async function eachPlace(merge: Merge, act: (placing: Placing) => Promise<void>, above = ''): Promise<void> {
  const { from, to } = merge
  for (const name of await from.names()) {
    const path = `${above}/${name.toString('latin1')}`
    const isFolder = (await from.look(name))?.isDirectory() === true
    if (isFolder && (await to.look(name))?.isDirectory() === true) await within(merge, name, (inner) => eachPlace(inner, act, path))
    else await act({ from, to, name, path })
  }
}

async function within(merge: Merge, name: Buffer, act: (inner: Merge) => Promise<void>): Promise<void> {
  await using from = await merge.from.enter(name)
  await using to = await merge.to.enter(name)
  await act({ ...merge, from, to, below: `${merge.below}${name.toString()}/` })
}
