/**
 * The key that signs receipts: made when it is first needed, and one for all that run as this user. Two processes that need it at the same moment each make
 * one, and the first to link its own into place decides; the other takes that.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { closeSync, constants, fstatSync, linkSync, openSync, readFileSync, renameSync, rmSync, type Stats, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import { draftIn, sweepDrafts } from './draft.js'
import { writeDurably } from './durable.js'
import { folderError } from './folder-error.js'
import { keyFolder, keyPlace } from './places.js'

export interface ReceiptKey {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export interface KeyOptions {
  /** Instead of the usual place; must be there. */
  readonly folder?: string
}

const readableByOthers = 0o077
const mostBytes = 4096

/** Throws SandboxError('unavailable') when there is no key to be had that only we know, with the way on. */
// eslint-disable-next-line @typescript-eslint/require-await -- whoever asks need not know that this machine's key is read at once
export async function loadReceiptKey(options: KeyOptions = {}): Promise<ReceiptKey> {
  const folder = options.folder ?? keyPlace()
  const privateKey = readKey(privatePath(folder)) ?? makeKey(folder)
  const publicKey = createPublicKey(privateKey)
  keepPublicKey(folder, publicKey)
  return { privateKey, publicKey }
}

/** The public half of the key that this user signs with; undefined when there is none yet. Makes nothing. */
// eslint-disable-next-line @typescript-eslint/require-await -- as above
export async function findReceiptKey(options: KeyOptions = {}): Promise<KeyObject | undefined> {
  const key = readKey(privatePath(options.folder ?? keyFolder()))
  return key && createPublicKey(key)
}

function privatePath(folder: string): string {
  return join(folder, 'receipt-key.pem')
}

/** Undefined when there is none. */
function readKey(path: string): KeyObject | undefined {
  const descriptor = openExisting(path)
  if (descriptor === undefined) return undefined
  try {
    refuseUnsafe(path, descriptor)
    return parseKey(path, readFileSync(descriptor, 'utf8'))
  } finally {
    closeSync(descriptor)
  }
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
function refuseUnsafe(path: string, descriptor: number): void {
  const status = fstatSync(descriptor)
  const { uid, mode, size } = status
  if (!status.isFile()) throw new SandboxError('unavailable', `the key ${path} is ${kindOf(status)}, not a file`, { hint: `mv ${path} ${path}.other` })
  const ours = process.getuid?.() ?? uid
  if (uid !== ours) throw new SandboxError('unavailable', `the key ${path} belongs to uid ${uid}, not to uid ${ours}`, { hint: `chown ${ours} ${path}` })
  if (mode & readableByOthers && process.platform !== 'win32') {
    throw new SandboxError('unavailable', `the key ${path} can be read by others (mode ${(mode & 0o777).toString(8)})`, { hint: `chmod 600 ${path}` })
  }
  if (size > mostBytes) throw damaged(path)
}

function kindOf(status: Stats): string {
  if (status.isDirectory()) return 'a folder'
  return status.isFIFO() ? 'a pipe' : 'a device'
}

function parseKey(path: string, text: string): KeyObject {
  try {
    const key = createPrivateKey(text)
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch {
    // What is wrong with it would tell of what is in it.
  }
  throw damaged(path)
}

function damaged(path: string): SandboxError {
  return new SandboxError('unavailable', `${path} holds no Ed25519 private key`, { hint: `mv ${path} ${path}.damaged` })
}

function makeKey(folder: string): KeyObject {
  const path = privatePath(folder)
  sweepDrafts(folder)
  const draft = draftIn(folder)
  const { privateKey } = generateKeyPairSync('ed25519')
  try {
    // On the disk before anything is signed with it.
    writeDurably(draft, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw folderError(folder, error, 'export GLOVEBOX_KEY_DIR="$(mktemp -d)"')
  } finally {
    rmSync(draft, { force: true })
  }
  const key = readKey(path)
  if (!key) throw new SandboxError('unavailable', `the key ${path} was taken away while it was made`, { hint: `ls -l ${folder}` })
  return key
}

/** To be handed to those who verify. A folder that cannot be written to, such as a mounted secret, needs none: the private key tells it. */
function keepPublicKey(folder: string, publicKey: KeyObject): void {
  const path = join(folder, 'receipt-key.pub.pem')
  const text = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const draft = draftIn(folder)
  try {
    if (isHeld(path, text)) return
    writeFileSync(draft, text, { flag: 'wx', mode: 0o644 })
    renameSync(draft, path)
  } catch {
    rmSync(draft, { force: true })
  }
}

function isHeld(path: string, text: string): boolean {
  try {
    const status = statSync(path)
    return status.isFile() && status.size <= mostBytes && readFileSync(path, 'utf8') === text
  } catch {
    return false
  }
}
