/**
 * Where the daemon of a user is found: a socket in a folder that only they can enter, beside it a record of who listens there.
 *
 * There is one daemon for each set of places that things are kept in, and for each policy of the operator's: commands that would keep their things elsewhere, or are held to
 * something else, have another. So whoever talks to a daemon gets what they would have got without one.
 */
import { createHash } from 'node:crypto'
import { chmodSync, lstatSync, mkdirSync, readFileSync, type Stats } from 'node:fs'
import { join, resolve } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import { cacheFolder, changesFolder, keyFolder, type PlaceFacts, processFacts, snapshotFolder, stateFolder, statePlace, templateFolder } from './places.js'

export interface DaemonPlace {
  readonly folder: string
  readonly socket: string
  readonly record: string
  /** Why the last one could not go on, as far as it could still say so. */
  readonly failure: string
}

/** Of a path of a socket, its end included. */
const mostPathBytes = 107
const forOthers = 0o077
const nameCharacters = 12

/** Touches nothing. */
export function daemonPlace(facts: PlaceFacts = processFacts()): DaemonPlace {
  const folder = join(stateFolder(facts), 'daemon')
  const { GLOVEBOX_POLICY: policy } = facts.env
  const parts = [
    keyFolder(facts),
    snapshotFolder(facts),
    templateFolder(facts),
    cacheFolder(facts),
    changesFolder(facts),
    policy === undefined ? '' : policyName(policy),
  ]
  const name = createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, nameCharacters)
  return daemonPlaceNamed(folder, name)
}

export function daemonPlaceNamed(folder: string, name: string): DaemonPlace {
  const place = (ending: string): string => join(folder, `${name}.${ending}`)
  return { folder, socket: place('sock'), record: place('json'), failure: place('failed') }
}

/** A preset is named alike everywhere, a file only by its whole path. */
function policyName(policy: string): string {
  return /^[a-z]+$/.test(policy) ? policy : resolve(policy)
}

/** Makes the folder. Throws where it cannot be had for oneself alone, or a socket in it would have too long a path. */
export function makeDaemonFolder(place: DaemonPlace): void {
  if (Buffer.byteLength(place.socket) > mostPathBytes) {
    throw new SandboxError('unavailable', `${place.socket} is too long a path for a socket, which may have ${mostPathBytes} bytes`, {
      hint: 'export GLOVEBOX_STATE_DIR="$(mktemp -d)"',
    })
  }
  statePlace()
  try {
    mkdirSync(place.folder, { mode: 0o700 })
    // Whatever the umask took away.
    chmodSync(place.folder, 0o700)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  checkDaemonPlace(place)
}

/** False when nothing is there. Throws SandboxError('unavailable') for what others could have put there, or could use. */
export function checkDaemonPlace({ folder, socket }: DaemonPlace): boolean {
  const own = process.getuid?.()
  const about = statusOf(folder)
  if (about === undefined) return false
  if (!about.isDirectory() || about.uid !== own || (about.mode & forOthers) !== 0) throw foreign(folder, about)
  const there = statusOf(socket)
  if (there === undefined) return false
  if (!there.isSocket() || there.uid !== own || (there.mode & forOthers) !== 0) throw foreign(socket, there)
  return true
}

function statusOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    // A folder above that is none, or that we may not enter, holds nothing of ours.
    if (['ENOTDIR', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

function foreign(path: string, { uid, mode }: Stats): SandboxError {
  const whose = uid === process.getuid?.() ? `has mode ${(mode & 0o7777).toString(8)}` : `belongs to uid ${uid}`
  return new SandboxError('unavailable', `${path} ${whose}, so what listens there may be somebody else`, { hint: `ls -ld ${path}` })
}

/** What a daemon was started with and cannot change: the program, and the content of the policy. */
export function daemonIdentity(program: string, facts: Pick<PlaceFacts, 'env'> = processFacts()): string {
  const { GLOVEBOX_POLICY: policy } = facts.env
  const { ino, size, mtimeMs } = lstatSync(program)
  const held = policy === undefined || /^[a-z]+$/.test(policy) ? '' : readOr(policy)
  return createHash('sha256')
    .update(JSON.stringify([program, ino, size, mtimeMs, held]))
    .digest('hex')
    .slice(0, nameCharacters)
}

/** What cannot be read is told by whoever reads it for its meaning. */
function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
