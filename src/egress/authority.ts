/**
 * The authority of this installation, which vouches towards programs inside for the hosts whose TLS is terminated. Its key stays on the host; what is placed
 * in cells is its certificate. That is made anew by every process, and is the same but for its signature: a program that trusts one trusts them all.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'
import { type KeyKind, loadKeyFile } from '../sys/key-file.js'
import { keyPlace } from '../sys/places.js'
import { keyIdentifier, makeCertificate } from './authority-der.js'

export interface Authority {
  /** PEM, for the trust stores of cells. */
  readonly certificate: string
  /** What to answer a program with that wants to speak to that host. */
  contextFor(host: string): SecureContext
}

export interface AuthorityOptions {
  /** Instead of the folder of this user's keys; must be there. */
  readonly folder?: string
}

const authorityKey: KeyKind = {
  name: 'egress-authority-key',
  words: 'P-256',
  isRight: (key) => key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1',
  make: newKey,
}

const subject = 'Glovebox egress authority'
const dayMs = 24 * 3_600_000
/** More hosts at once than this one pays for with the making of a certificate, which is well below a millisecond. */
const mostLeaves = 500

/** Throws SandboxError('unavailable') when its key cannot be had. */
export function loadAuthority(options: AuthorityOptions = {}): Authority {
  return authorityOf(loadKeyFile(options.folder ?? keyPlace(), authorityKey))
}

function authorityOf(privateKey: KeyObject): Authority {
  const publicKey = createPublicKey(privateKey)
  const issuerKey = { privateKey, publicKey }
  const certificate = makeCertificate({
    subject,
    issuer: subject,
    publicKey,
    issuerKey,
    serial: keyIdentifier(publicKey).subarray(0, 16),
    notBefore: new Date('2025-01-01T00:00:00Z'),
    notAfter: new Date('2049-12-31T00:00:00Z'),
  })
  // One key for all hosts: programs trust the authority, which could make any.
  const leafKey = newKey()
  const leaves = new Map<string, { context: SecureContext; made: number }>()
  return {
    certificate,
    contextFor: (host) => {
      const known = leaves.get(host)
      leaves.delete(host)
      const leaf =
        known !== undefined && Date.now() - known.made < dayMs ? known : { context: leafFor(host, { issuerKey, leafKey, certificate }), made: Date.now() }
      leaves.set(host, leaf)
      for (const oldest of leaves.size > mostLeaves ? leaves.keys() : []) {
        leaves.delete(oldest)
        break
      }
      return leaf.context
    },
  }
}

interface LeafKeys {
  readonly issuerKey: { readonly privateKey: KeyObject; readonly publicKey: KeyObject }
  readonly leafKey: KeyObject
  readonly certificate: string
}

function leafFor(host: string, { issuerKey, leafKey, certificate }: LeafKeys): SecureContext {
  const now = Date.now()
  const leaf = makeCertificate({
    // The name that counts is the alternative one; this has room for 64 bytes.
    subject: host.length <= 64 ? host : 'host',
    issuer: subject,
    publicKey: createPublicKey(leafKey),
    issuerKey,
    serial: randomBytes(16),
    // Clocks inside of cells are the host's, those of pictures of machines are not.
    notBefore: new Date(now - dayMs),
    notAfter: new Date(now + 30 * dayMs),
    host,
  })
  const key = leafKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  // Programs show no certificates; without a word about whom to trust, every context would load the world's authorities.
  return createSecureContext({ cert: leaf, key, ca: certificate, minVersion: 'TLSv1.2' })
}

function newKey(): KeyObject {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  return createPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' }))
}
