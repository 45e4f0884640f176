/** Moves what was staged to its place: by a rename where that is one file system, otherwise by a copy that is renamed when it is whole. */
import { SandboxError } from '../contract/errors.js'
import { printable } from '../contract/printable.js'
import { draftName } from './draft.js'
import type { HostFolder } from './host-folder-handle.js'
import { removeHeld } from './tree-removal.js'

const pieceBytes = 256 * 1024

export interface Spot {
  readonly folder: HostFolder
  readonly name: Buffer
}

/** Replaces what is there, if it is no folder. */
export async function moveEntry(from: Spot, to: Spot): Promise<void> {
  try {
    await from.folder.moveTo(from.name, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await copyEntry(from, to)
  }
}

/** What cannot be moved stays where it was, too: it is in a folder of ours, which goes as a whole. */
async function copyEntry(from: Spot, to: Spot): Promise<void> {
  const status = await from.folder.look(from.name)
  const draft = { folder: to.folder, name: Buffer.from(draftName()) }
  if (status?.isDirectory() === true) return copyFolder(from, { draft, to })
  try {
    if (status?.isSymbolicLink() === true) await draft.folder.createLink(draft.name, await from.folder.readLink(from.name))
    else await copyFile(from, draft)
    await draft.folder.moveTo(draft.name, to)
  } catch (error) {
    await draft.folder.unlink(draft.name).catch(() => undefined)
    throw error
  }
}

async function copyFile(from: Spot, draft: Spot): Promise<void> {
  const source = await from.folder.openFile(from.name)
  try {
    const { mode, mtime } = await source.stat()
    const copy = await draft.folder.createFile(draft.name, 0o600)
    try {
      const room = Buffer.allocUnsafeSlow(pieceBytes)
      for (;;) {
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

async function copyFolder(from: Spot, { draft, to }: { readonly draft: Spot; readonly to: Spot }): Promise<void> {
  await using source = await from.folder.enter(from.name)
  await using copy = await draft.folder.createHeld(draft.name)
  try {
    for (const name of await source.names()) await copyEntry({ folder: source, name }, { folder: copy, name })
    await copy.setOwnMode((await source.status()).mode & 0o777)
    await checkSame(draft, copy)
    await draft.folder.moveTo(draft.name, to)
  } catch (error) {
    await removeHeld({ folder: draft.folder.descriptor, name: draft.name }, copy.descriptor).catch(() => undefined)
    throw error
  }
}

/** Somebody who may write there could have given the name to another folder. */
async function checkSame({ folder, name }: Spot, held: HostFolder): Promise<void> {
  const [now, meant] = [await folder.look(name), await held.status()]
  if (now?.dev === meant.dev && now.ino === meant.ino) return
  throw new SandboxError('conflict', `download: ${printable(name.toString())} was moved away while it was filled`)
}
