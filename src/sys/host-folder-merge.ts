/** Moves a staged folder into one that is there: first it is looked whether all of it fits, then it is moved. */
import { SandboxError } from '../contract/errors.js'
import { printable } from '../contract/printable.js'
import type { HostFolder } from './host-folder-handle.js'
import { moveEntry } from './host-folder-move.js'

export interface Merge {
  readonly from: HostFolder
  readonly to: HostFolder
  readonly overwrite: boolean
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
  const { from, to } = merge
  for (const name of await from.names()) {
    const there = await to.look(name)
    const isFolder = (await from.look(name))?.isDirectory() === true
    if (isFolder && there?.isDirectory() === true) {
      await within(merge, name, mergeFolder)
      continue
    }
    // A folder cannot be moved onto a file or a link.
    if (isFolder && there) await to.unlink(name)
    await moveEntry({ folder: from, name }, { folder: to, name })
  }
}

async function within(merge: Merge, name: Buffer, act: (inner: Merge) => Promise<void>): Promise<void> {
  await using from = await merge.from.enter(name)
  await using to = await merge.to.enter(name)
  await act({ from, to, overwrite: merge.overwrite, below: `${merge.below}${name.toString()}/` })
}
