/** Folders for a while, which a program may fill with whatever it likes. */
import { mkdtemp, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { currentOwner, ownerName } from './owner.js'
import { Sweeper } from './sweeper.js'
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

/** After the prefix; a longer one is another's, unless it is asked for no more than what all have in common. */
const ownerIn = /^(?:[a-z]+-)?(\d+\.\d+\.\d+\.[0-9a-f]+)-/

export interface Sweep {
  readonly sweeper?: Sweeper
  /** The system's place for temporary files, unless said. */
  readonly place?: string
  /** What is to be done with each before it is removed. */
  readonly before?: (left: HostFolder) => Promise<void>
}

/** Removes what processes that were killed left under this prefix. Only what belongs to our own uid: someone else could change theirs under us. */
export async function sweepTempFolders(prefix: string, { place, before, sweeper = new Sweeper() }: Sweep = {}): Promise<void> {
  await using folder = await HostFolder.open(place ?? (await tempPlace()))
  for (const name of await folder.names()) {
    const text = name.toString('latin1')
    const owner = text.startsWith(prefix) ? ownerIn.exec(text.slice(prefix.length))?.[1] : undefined
    // Anybody can put something there, and give it any name.
    if (owner === undefined || !(await isOwn(folder, name))) continue
    await sweeper.attemptSlowly({ kind: 'folder', what: text, owner }, () => sweepOne(folder, name, before))
  }
}

async function isOwn(folder: HostFolder, name: Buffer): Promise<boolean> {
  try {
    const status = await folder.look(name)
    return status !== undefined && status.isDirectory() && status.uid === process.getuid?.()
  } catch {
    return false
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
