/** Folders for a while, which a program may fill with whatever it likes. */
import { mkdtemp, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { currentOwner, isAlive, ownerName, parseOwner } from './owner.js'
import { removeTreeAt } from './tree-removal.js'
import { HostFolder } from './host-folder-handle.js'

export { removeTree } from './tree-removal.js'

/** Mode 0700; its name tells whose it is, so that it can be swept when that process is dead. */
export async function makeTempFolder(prefix: string, place?: string): Promise<string> {
  return await mkdtemp(join(place ?? (await tempPlace()), `${prefix}${ownerName(currentOwner())}-`))
}

/** The system's place for temporary files. */
export function tempPlace(): Promise<string> {
  return realpath(tmpdir())
}

export interface Sweep {
  /** The system's place for temporary files, unless said. */
  readonly place?: string
  /** What is to be done with each before it is removed. */
  readonly before?: (left: HostFolder) => Promise<void>
}

/** Removes what processes that were killed left under this prefix. Only what belongs to our own uid: someone else could change theirs under us. */
export async function sweepTempFolders(prefix: string, { place, before }: Sweep = {}): Promise<void> {
  await using folder = await HostFolder.open(place ?? (await tempPlace()))
  for (const name of await folder.names()) {
    const text = name.toString('latin1')
    if (!text.startsWith(prefix)) continue
    const owner = parseOwner(text.slice(prefix.length).split('-')[0] ?? '')
    if (owner === undefined || isAlive(owner)) continue
    // Another engine may be sweeping the same; what stays is found by the next.
    await sweepOne(folder, name, before).catch(() => undefined)
  }
}

async function sweepOne(folder: HostFolder, name: Buffer, before: Sweep['before']): Promise<void> {
  const isOurs = ({ uid }: { readonly uid: number | bigint }): boolean => Number(uid) === process.getuid?.()
  if (before) {
    await using left = await folder.enter(name)
    if (isOurs(await left.status())) await before(left)
  }
  await removeTreeAt({ folder: folder.descriptor, name }, isOurs)
}
