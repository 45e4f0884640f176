/**
 * Removes folders with all that is in them, whoever filled them and is still at it. Every folder is opened by its name in one that is held open, never through
 * a link, and from then on used by its descriptor (`/proc/self/fd/N`): whoever swaps a folder for a link, or for another one, meanwhile leads us nowhere.
 *
 * Every folder found inside is moved up to the top, so that no path grows with the depth of the tree, and is opened up before, so that no mode protects it.
 * Names are bytes: they need not be text. What is mounted in there is another's, and stops it. The calls are synchronous, since there may be very many very
 * small ones, with pauses for other work between them.
 */
import { randomUUID } from 'node:crypto'
import {
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs'
import { basename, dirname } from 'node:path'
import { setImmediate as otherWork } from 'node:timers/promises'
import { SandboxError } from '../contract/errors.js'

const maxPasses = 20
const entriesAtOnce = 100
const ownerBits = 0o700

/** Node does not name it; the same on every architecture that there are cells for. */
const openPath = 0o10000000

/** A name in a folder that is held open. */
export interface Place {
  readonly folder: number
  readonly name: Buffer
}

/** Quiet when it is gone already, or is no folder. The links above it are followed, once; it itself is none. */
export async function removeTree(path: string): Promise<void> {
  const above = quietly(() => openSync(dirname(path), openPath | constants.O_DIRECTORY))
  if (above === undefined) return
  try {
    await removeTreeAt({ folder: above, name: Buffer.from(basename(path)) })
  } finally {
    closeSync(above)
  }
}

/** The same; with `isOurs` only if it says so of what was opened. */
export async function removeTreeAt(place: Place, isOurs: (status: BigIntStats) => boolean = () => true): Promise<void> {
  const folder = openFolder(place, isOurs)
  if (folder === undefined) return
  try {
    await removeHeld(place, folder)
  } finally {
    closeSync(folder)
  }
}

/** Empties the very folder that is held, wherever it is by now, and takes away its name if it still has it. */
export async function removeHeld(place: Place, folder: number): Promise<void> {
  for (let pass = 0; pass < maxPasses; pass += 1) {
    await empty(folder)
    if (!isSameFolder(place, folder) || isRemoved(place)) return
  }
  throw new SandboxError('broken', `${place.name.toString()} is filled faster than it can be emptied`)
}

function isSameFolder(place: Place, folder: number): boolean {
  const [now, held] = [lstatSync(at(place), { bigint: true, throwIfNoEntry: false }), fstatSync(folder, { bigint: true })]
  return now?.dev === held.dev && now.ino === held.ino
}

async function empty(top: number): Promise<void> {
  const emptying: Emptying = { top, mount: mountOf(top), waiting: [], entries: 0 }
  await clear(top, emptying)
  for (let name = emptying.waiting.pop(); name; name = emptying.waiting.pop()) {
    const place = { folder: top, name }
    const folder = openFolder(place)
    // Something else was put there; the next pass finds it.
    if (folder === undefined) continue
    try {
      checkMount(folder, emptying)
      await clear(folder, emptying)
    } finally {
      closeSync(folder)
    }
    isRemoved(place)
  }
}

interface Emptying {
  readonly top: number
  readonly mount: string
  /** Names of folders in the top that are to be emptied. */
  readonly waiting: Buffer[]
  entries: number
}

async function clear(folder: number, emptying: Emptying): Promise<void> {
  for (const entry of entriesOf(folder)) {
    const place = { folder, name: entry.name as unknown as Buffer }
    if (!entry.isDirectory()) quietly(() => unlinkSync(at(place)))
    else if (folder === emptying.top) emptying.waiting.push(place.name)
    else moveUp(place, emptying)
    emptying.entries += 1
    if (emptying.entries % entriesAtOnce === 0) await otherWork()
  }
}

/** Read as they are needed: there may be more of them than fit in memory. */
function* entriesOf(folder: number): Generator<Dirent> {
  // The declared type knows only names that are text.
  const listing = opendirSync(`/proc/self/fd/${folder}`, { encoding: 'buffer' as BufferEncoding })
  try {
    for (let entry = listing.readSync(); entry; entry = listing.readSync()) yield entry
  } finally {
    listing.closeSync()
  }
}

function moveUp(place: Place, emptying: Emptying): void {
  // Moving a folder writes its `..`, which its own mode can forbid.
  const folder = openFolder(place)
  if (folder === undefined) return
  try {
    checkMount(folder, emptying)
  } finally {
    closeSync(folder)
  }
  const name = Buffer.from(randomUUID())
  quietly(() => renameSync(at(place), at({ folder: emptying.top, name })))
  emptying.waiting.push(name)
}

/** Undefined for what is gone, or no folder. Its owner may read and write it then. */
function openFolder(place: Place, isOurs: (status: BigIntStats) => boolean = () => true): number | undefined {
  const held = quietly(() => openSync(at(place), openPath | constants.O_DIRECTORY | constants.O_NOFOLLOW))
  if (held === undefined) return undefined
  try {
    const status = fstatSync(held, { bigint: true })
    if (!isOurs(status)) return undefined
    // By the descriptor: this very folder, whatever has the name now.
    if ((Number(status.mode) & ownerBits) !== ownerBits) chmodSync(`/proc/self/fd/${held}`, ownerBits)
    return openSync(`/proc/self/fd/${held}`, constants.O_RDONLY | constants.O_DIRECTORY)
  } finally {
    closeSync(held)
  }
}

function checkMount(folder: number, { mount }: Emptying): void {
  if (mountOf(folder) !== mount) throw new SandboxError('busy', 'a folder that is to be removed has something mounted in it')
}

/** By its number: only within one mount can something be renamed. */
export function mountOf(folder: number): string {
  return /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${folder}`, 'latin1'))?.[1] ?? ''
}

/** False when something was put there meanwhile, by a program that is about to end; the next pass finds it. */
function isRemoved(place: Place): boolean {
  try {
    rmdirSync(at(place))
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return true
    if (code === 'ENOTEMPTY' || code === 'ENOTDIR') return false
    throw error
  }
}

/** Undefined when what was there is gone, or something else: somebody else was faster. */
function quietly<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

function at({ folder, name }: Place): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${folder}/`), name])
}
