/**
 * A receipt is signed with Ed25519 over the canonical form of all of it but `signature.value`: the algorithm, the key and its id are signed too, so that a
 * signature belongs to one receipt by one key and to nothing else.
 */
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { SandboxError } from '../contract/errors.js'
import { type Receipt, receiptSchema, type UnsignedReceipt } from '../contract/receipt.js'
import { canonicalJson } from './canonical-json.js'

const algorithm = 'ed25519'
const signatureBytes = 64

/** `trusted` only when the key is one that was handed in; an intact receipt by an unknown key says nothing about who made it. */
export type Verification =
  | { readonly valid: true; readonly keyId: string; readonly trusted: boolean; readonly receipt: Receipt }
  | { readonly valid: false; readonly why: string }

export function signReceipt(unsigned: UnsignedReceipt, privateKey: KeyObject): Receipt {
  const publicKey = createPublicKey(privateKey)
  const signer = { algorithm, keyId: keyIdOf(publicKey), publicKey: spkiOf(publicKey).toString('base64') } as const
  const value = sign(null, signedBytes({ ...unsigned, signature: signer }), privateKey).toString('base64')
  return { ...unsigned, signature: { ...signer, value } }
}

/** With a key given, only a receipt by that key is valid. Never throws, whatever it is given. */
export function verifyReceipt(receipt: unknown, options: { readonly publicKey?: KeyObject } = {}): Verification {
  try {
    return check(receipt, options.publicKey)
  } catch (error) {
    return { valid: false, why: error instanceof SandboxError ? error.message : 'it cannot be read' }
  }
}

/** SHA-256 of the public key's SPKI form, first 16 hexadecimal digits. */
export function keyIdOf(publicKey: KeyObject): string {
  return createHash('sha256').update(spkiOf(publicKey)).digest('hex').slice(0, 16)
}

function check(input: unknown, expectedKey: KeyObject | undefined): Verification {
  // What is verified is a copy: nothing that answers differently when asked again gets past this.
  const parsed = receiptSchema.safeParse(JSON.parse(canonicalJson(input)))
  if (!parsed.success) return invalid(schemaProblem(parsed.error.issues[0]))
  const receipt = parsed.data
  const { value, ...signer } = receipt.signature
  const publicKey = publicKeyOf(signer.publicKey)
  if (publicKey === undefined) return invalid('signature.publicKey: is no Ed25519 public key')
  if (signer.keyId !== keyIdOf(publicKey)) return invalid('signature.keyId: is not that of the key')
  if (expectedKey && !spkiOf(expectedKey).equals(spkiOf(publicKey))) return invalid(`it is signed by key ${signer.keyId}, not by ${keyIdOf(expectedKey)}`)
  const signature = decodeBase64(value)
  if (signature?.length !== signatureBytes) return invalid('signature.value: is no signature')
  if (!verify(null, signedBytes({ ...receipt, signature: signer }), publicKey, signature)) return invalid('the signature does not fit: something was changed')
  return { valid: true, keyId: signer.keyId, trusted: expectedKey !== undefined, receipt }
}

function invalid(why: string): Verification {
  return { valid: false, why }
}

function signedBytes(receipt: unknown): Buffer {
  return Buffer.from(canonicalJson(receipt))
}

function spkiOf(publicKey: KeyObject): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' })
}

/** Undefined unless it is an Ed25519 key in the one encoding it has. */
function publicKeyOf(text: string): KeyObject | undefined {
  const der = decodeBase64(text)
  if (der === undefined) return undefined
  try {
    const key = createPublicKey({ key: der, type: 'spki', format: 'der' })
    return key.asymmetricKeyType === algorithm && spkiOf(key).equals(der) ? key : undefined
  } catch {
    return undefined
  }
}

/** Undefined unless it is the one text that these bytes have. */
function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : undefined
}

function schemaProblem(issue: { readonly path: readonly PropertyKey[]; readonly message: string } | undefined): string {
  if (issue === undefined) return 'it is no receipt'
  return issue.path.length === 0 ? `it is no receipt: ${issue.message}` : `${issue.path.map(String).join('.')}: ${issue.message}`
}
