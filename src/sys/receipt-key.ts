/** The key that signs receipts, and its public half beside it for those who verify. */
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { draftIn } from './draft.js'
import { findKeyFile, type KeyKind, loadKeyFile } from './key-file.js'
import { keyFolder, keyPlace } from './places.js'

export interface ReceiptKey {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export interface KeyOptions {
  /** Instead of the usual place; must be there. */
  readonly folder?: string
}

const mostBytes = 4096

const receiptKey: KeyKind = {
  name: 'receipt-key',
  words: 'Ed25519',
  isRight: (key) => key.asymmetricKeyType === 'ed25519',
  make: () => generateKeyPairSync('ed25519').privateKey,
}

/** Throws SandboxError('unavailable') when there is no key to be had that only we know, with the way on. */
// eslint-disable-next-line @typescript-eslint/require-await -- whoever asks need not know that this machine's key is read at once
export async function loadReceiptKey(options: KeyOptions = {}): Promise<ReceiptKey> {
  const folder = options.folder ?? keyPlace()
  const privateKey = loadKeyFile(folder, receiptKey)
  const publicKey = createPublicKey(privateKey)
  keepPublicKey(folder, publicKey)
  return { privateKey, publicKey }
}

/** The public half of the key that this user signs with; undefined when there is none yet. Makes nothing. */
// eslint-disable-next-line @typescript-eslint/require-await -- as above
export async function findReceiptKey(options: KeyOptions = {}): Promise<KeyObject | undefined> {
  const key = findKeyFile(options.folder ?? keyFolder(), receiptKey)
  return key && createPublicKey(key)
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
