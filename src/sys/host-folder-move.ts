/** Moves what was staged to its place: by a rename where that is one file system, otherwise by a copy that is renamed when it is whole. */
import type { BigIntStats, Stats } from 'node:fs'
import { SandboxError } from '../contract/errors.js'
import { printable } from '../contract/printable.js'
import { draftName } from './draft.js'
import type { HostFolder } from './host-folder-handle.js'
import type { DraftNotes } from './host-folder-notes.js'
import { removeHeld, removeTreeAt } from './tree-removal.js'

const pieceBytes = 256 * 1024

export interface Spot {
  readonly folder: HostFolder
  readonly name: Buffer
}

export interface Copying {
  readonly notes: DraftNotes
  /** Calls it off while nothing has taken its place. */
  readonly signal: AbortSignal | undefined
}

/** What is in a folder goes with it, and is not noted. */
type CopyingWithin = Partial<Copying> & Pick<Copying, 'signal'>

/** A copy that is whole and waits for its name. */
export interface Draft {
  readonly name: Buffer
  /** The very folder that it is; of a file the name is enough, since no more than one file can be lost by it. */
  readonly folder: Pick<Stats, 'dev' | 'ino'> | undefined
}

/** Replaces what is there, if it is no folder. */
export async function moveEntry(from: Spot, to: Spot, copying: Copying): Promise<void> {
  try {
    await from.folder.moveTo(from.name, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await placeDraft(await copyBeside(from, to.folder, copying), to)
  }
}

export async function placeDraft(draft: Draft, to: Spot): Promise<void> {
  try {
    await checkSame(draft, to.folder)
    await to.folder.moveTo(draft.name, to)
  } catch (error) {
    await removeDraft(draft, to.folder)
    throw error
  }
}

/** What cannot be copied leaves nothing here, and stays where it was: in a folder of ours, which goes as a whole. */
export async function copyBeside(from: Spot, folder: HostFolder, copying: Copying): Promise<Draft> {
  const name = Buffer.from(draftName())
  copying.notes.keepPlace(folder)
  return { name, folder: await copyEntry(from, { folder, name }, copying) }
}

/** Quiet. Whoever may write there could have given its name to a folder that is not ours. */
export async function removeDraft({ name, folder: meant }: Draft, folder: HostFolder): Promise<void> {
  if (!meant) return folder.unlink(name).catch(() => undefined)
  const isMeant = ({ dev, ino }: BigIntStats): boolean => Number(dev) === meant.dev && Number(ino) === meant.ino
  await removeTreeAt({ folder: folder.descriptor, name }, isMeant).catch(() => undefined)
}

/** Tells which folder it made, if it is one. */
async function copyEntry(from: Spot, to: Spot, copying: CopyingWithin): Promise<Draft['folder']> {
  const status = await from.folder.look(from.name)
  if (status?.isDirectory() === true) return copyFolder(from, to, copying)
  try {
    if (status?.isSymbolicLink() === true) await to.folder.createLink(to.name, await from.folder.readLink(from.name))
    else await copyFile(from, to, copying)
  } catch (error) {
    await to.folder.unlink(to.name).catch(() => undefined)
    throw error
  }
}

async function copyFile(from: Spot, to: Spot, { signal }: CopyingWithin): Promise<void> {
  const source = await from.folder.openFile(from.name)
  try {
    const { mode, mtime } = await source.stat()
    const copy = await to.folder.createFile(to.name, 0o600)
    try {
      const room = Buffer.allocUnsafeSlow(pieceBytes)
      for (;;) {
        signal?.throwIfAborted()
        const { bytesRead } = await source.read(room, 0, pieceBytes)
        if (bytesRead === 0) break
        for (let done = 0; done < bytesRead; ) done += (await copy.write(room, done, bytesRead - done)).bytesWritten
      }
      await copy.utimes(mtime, mtime)
      await copy.chmod(mode & 0o777)
    } finally {
      await copy.close()
    }
  } finally {
    await source.close()
  }
}

async function copyFolder(from: Spot, to: Spot, { notes, signal }: CopyingWithin): Promise<Draft['folder']> {
  await using source = await from.folder.enter(from.name)
  await using copy = await to.folder.createHeld(to.name)
  try {
    notes?.keepFolder(to.folder, to.name, copy)
    for (const name of await source.names()) await copyEntry({ folder: source, name }, { folder: copy, name }, { signal })
    await copy.setOwnMode((await source.status()).mode & 0o777)
    return await copy.status()
  } catch (error) {
    await removeHeld({ folder: to.folder.descriptor, name: to.name }, copy.descriptor).catch(() => undefined)
    throw error
  }
}

/** Somebody who may write there could have given the name to another folder. */
async function checkSame({ name, folder: meant }: Draft, folder: HostFolder): Promise<void> {
  const now = await folder.look(name)
  if (!meant || (now?.dev === meant.dev && now.ino === meant.ino)) return
  throw new SandboxError('conflict', `download: ${printable(name.toString())} was moved away while it was filled`)
}
