/**
 * A private key in a folder of ours: made when it is first needed, and one for all that run as this user. Two processes that need it at the same moment each
 * make one, and the first to link its own into place decides; the other takes that.
 */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { closeSync, constants, fstatSync, linkSync, openSync, readFileSync, rmSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import { draftIn, sweepDrafts } from './draft.js'
import { writeDurably } from './durable.js'
import { folderError } from './folder-error.js'

export interface KeyKind {
  /** Of the file, without its ending. */
  readonly name: string
  /** As an error calls it. */
  readonly words: string
  isRight(key: KeyObject): boolean
  make(): KeyObject
}

const readableByOthers = 0o077
const mostBytes = 4096

/** Throws SandboxError('unavailable') when there is no key to be had that only we know, with the way on. */
export function loadKeyFile(folder: string, kind: KeyKind): KeyObject {
  return findKeyFile(folder, kind) ?? makeKeyFile(folder, kind)
}

/** Undefined when there is none. Makes nothing. */
export function findKeyFile(folder: string, kind: KeyKind): KeyObject | undefined {
  const path = pathOf(folder, kind)
  const descriptor = openExisting(path)
  if (descriptor === undefined) return undefined
  try {
    refuseUnsafe(path, { descriptor, kind })
    return parseKey(path, { text: readFileSync(descriptor, 'utf8'), kind })
  } finally {
    closeSync(descriptor)
  }
}

function pathOf(folder: string, kind: KeyKind): string {
  return join(folder, `${kind.name}.pem`)
}

function openExisting(path: string): number | undefined {
  try {
    // A pipe would wait for a writer that never comes. Links are followed: mounted secrets are links, and what counts is whose the file is.
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new SandboxError('unavailable', `cannot read the key ${path}: ${code}`, { hint: `ls -l ${path}`, cause: error })
  }
}

/** What others can read they can sign with; what belongs to another they can exchange. */
function refuseUnsafe(path: string, { descriptor, kind }: { descriptor: number; kind: KeyKind }): void {
  const status = fstatSync(descriptor)
  const { uid, mode, size } = status
  if (!status.isFile()) throw new SandboxError('unavailable', `the key ${path} is ${kindOf(status)}, not a file`, { hint: `mv ${path} ${path}.other` })
  const ours = process.getuid?.() ?? uid
  if (uid !== ours) throw new SandboxError('unavailable', `the key ${path} belongs to uid ${uid}, not to uid ${ours}`, { hint: `chown ${ours} ${path}` })
  if (mode & readableByOthers && process.platform !== 'win32') {
    throw new SandboxError('unavailable', `the key ${path} can be read by others (mode ${(mode & 0o777).toString(8)})`, { hint: `chmod 600 ${path}` })
  }
  if (size > mostBytes) throw damaged(path, kind)
}

function kindOf(status: Stats): string {
  if (status.isDirectory()) return 'a folder'
  return status.isFIFO() ? 'a pipe' : 'a device'
}

function parseKey(path: string, { text, kind }: { text: string; kind: KeyKind }): KeyObject {
  try {
    const key = createPrivateKey(text)
    if (kind.isRight(key)) return key
  } catch {
    // What is wrong with it would tell of what is in it.
  }
  throw damaged(path, kind)
}

function damaged(path: string, kind: KeyKind): SandboxError {
  return new SandboxError('unavailable', `${path} holds no ${kind.words} private key`, { hint: `mv ${path} ${path}.damaged` })
}

function makeKeyFile(folder: string, kind: KeyKind): KeyObject {
  const path = pathOf(folder, kind)
  sweepDrafts(folder)
  const draft = draftIn(folder)
  try {
    // On the disk before anything is signed with it.
    writeDurably(draft, kind.make().export({ type: 'pkcs8', format: 'pem' }).toString())
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw folderError(folder, error, 'export GLOVEBOX_KEY_DIR="$(mktemp -d)"')
  } finally {
    rmSync(draft, { force: true })
  }
  const key = findKeyFile(folder, kind)
  if (!key) throw new SandboxError('unavailable', `the key ${path} was taken away while it was made`, { hint: `ls -l ${folder}` })
  return key
}
