/**
 * A document is signed with Ed25519 over the canonical form of all of it but `signature.value`: the algorithm, the key and its id are signed too, so that a
 * signature belongs to one document by one key and to nothing else. What kind of document it is stands in its `schema`, so that none passes for another.
 */
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { canonicalJson } from '../contract/canonical-json.js'
import type { Signature } from '../contract/receipt.js'

const algorithm = 'ed25519'
const signatureBytes = 64

export type DocumentSigner = <Document extends object>(unsigned: Document) => Document & { readonly signature: Signature }

/** Knows its key's id from then on, which takes longer to find than signing does. */
export function documentSigner(privateKey: KeyObject): DocumentSigner {
  const publicKey = createPublicKey(privateKey)
  const signer = { algorithm, keyId: keyIdOf(publicKey), publicKey: spkiOf(publicKey).toString('base64') } as const
  return (unsigned) => {
    const value = sign(null, signedBytes({ ...unsigned, signature: signer }), privateKey).toString('base64')
    return { ...unsigned, signature: { ...signer, value } }
  }
}

/** What is wrong with the signature of a document that its schema has accepted; undefined when nothing is. With a key given, only that one's is right. */
export function signatureProblem(document: { readonly signature: Signature }, expectedKey?: KeyObject): string | undefined {
  const { value, ...signer } = document.signature
  const publicKey = publicKeyOf(signer.publicKey)
  if (publicKey === undefined) return 'signature.publicKey: is no Ed25519 public key'
  if (signer.keyId !== keyIdOf(publicKey)) return 'signature.keyId: is not that of the key'
  if (expectedKey && !spkiOf(expectedKey).equals(spkiOf(publicKey))) return `it is signed by key ${signer.keyId}, not by ${keyIdOf(expectedKey)}`
  const signature = decodeBase64(value)
  if (signature?.length !== signatureBytes) return 'signature.value: is no signature'
  if (!verify(null, signedBytes({ ...document, signature: signer }), publicKey, signature)) return 'the signature does not fit: something was changed'
  return undefined
}

/** SHA-256 of the public key's SPKI form, first 16 hexadecimal digits. */
export function keyIdOf(publicKey: KeyObject): string {
  return createHash('sha256').update(spkiOf(publicKey)).digest('hex').slice(0, 16)
}

function signedBytes(document: unknown): Buffer {
  return Buffer.from(canonicalJson(document))
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
