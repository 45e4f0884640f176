/** Folders for a while, which a program may fill with whatever it likes. */
import { randomUUID } from 'node:crypto'
import { chmodSync, type Dirent, lstatSync, opendirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { mkdtemp, readdir, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as otherWork } from 'node:timers/promises'
import { SandboxError } from '../contract/errors.js'
import { currentOwner, isAlive, ownerName, parseOwner } from './owner.js'

const maxPasses = 20
const entriesAtOnce = 100

/** Mode 0700, below the system's place for temporary files; its name tells whose it is, so that it can be swept when that process is dead. */
export async function makeTempFolder(prefix: string): Promise<string> {
  return await mkdtemp(join(await realpath(tmpdir()), `${prefix}${ownerName(currentOwner())}-`))
}

/** Removes what processes that were killed left under this prefix. Only what belongs to our own uid: someone else could change theirs under us. */
export async function sweepTempFolders(prefix: string): Promise<void> {
  const place = await realpath(tmpdir())
  for (const name of await readdir(place)) {
    if (!name.startsWith(prefix)) continue
    const owner = parseOwner(name.slice(prefix.length).split('-')[0] ?? '')
    const path = join(place, name)
    const isLeft = owner !== undefined && !isAlive(owner) && lstatSync(path, { throwIfNoEntry: false })?.uid === process.getuid?.()
    // Another engine may be sweeping the same; what stays is found by the next.
    if (isLeft) await removeTree(path).catch(() => undefined)
  }
}

/**
 * Removes a folder with all that is in it; quiet when it is gone already. Every folder found inside is first moved up to the top, so that no path
 * grows with the depth of the tree, and is opened up before, so that no mode protects it. Names are bytes: they need not be text. Links are
 * removed, never followed. The calls are synchronous, since there may be very many very small ones, with pauses for other work between them.
 */
export async function removeTree(folder: string): Promise<void> {
  if (!isFolder(folder)) return
  for (let pass = 0; pass < maxPasses; pass += 1) {
    await empty(Buffer.from(folder))
    if (isRemoved(folder)) return
  }
  throw new SandboxError('broken', `${folder} is filled faster than it can be emptied`)
}

async function empty(top: Buffer): Promise<void> {
  const waiting = [top]
  let entries = 0
  for (let folder = waiting.pop(); folder; folder = waiting.pop()) {
    for (const entry of entriesOf(folder)) {
      const path = Buffer.concat([folder, slash, entry.name as unknown as Buffer])
      if (!entry.isDirectory()) unlinkSync(path)
      else waiting.push(folder === top ? openUp(path) : moveUp(path, top))
      entries += 1
      if (entries % entriesAtOnce === 0) await otherWork()
    }
    if (folder !== top) isRemoved(folder)
  }
}

const slash = Buffer.from('/')

/** Read as they are needed: there may be more of them than fit in memory. */
function* entriesOf(folder: Buffer): Generator<Dirent> {
  // The declared type knows only names that are text.
  const listing = opendirSync(folder, { encoding: 'buffer' as BufferEncoding })
  try {
    for (let entry = listing.readSync(); entry; entry = listing.readSync()) yield entry
  } finally {
    listing.closeSync()
  }
}

/** Emptying a folder writes its list, and moving it its `..`; its own mode can forbid both. */
function openUp(path: Buffer): Buffer {
  chmodSync(path, 0o700)
  return path
}

function moveUp(path: Buffer, top: Buffer): Buffer {
  const target = Buffer.concat([top, slash, Buffer.from(randomUUID())])
  renameSync(openUp(path), target)
  return target
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function isRemoved(path: string | Buffer): boolean {
  try {
    rmdirSync(path)
    return true
  } catch (error) {
    // Something was put there meanwhile, by a program that is about to end; the next pass finds it.
    if ((error as NodeJS.ErrnoException).code === 'ENOTEMPTY') return false
    throw error
  }
}
