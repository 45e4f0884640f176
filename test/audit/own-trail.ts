import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AuditEntry } from '../../src/contract/audit.js'
import { openAuditTrail, type Signing } from '../../src/audit/index.js'
import { documentSigner, signatureProblem } from '../../src/receipt/index.js'

export function signingWith(privateKey: KeyObject): Signing {
  const publicKey = createPublicKey(privateKey)
  return { sign: documentSigner(privateKey), problemOf: (document) => signatureProblem(document, publicKey) }
}

/** A folder with a trail in it and a key of its own, gone at the end. */
export function ownTrailFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-audit-test-'))
  const { privateKey } = generateKeyPairSync('ed25519')
  const path = join(folder, 'audit.db')
  const signing = signingWith(privateKey)
  return {
    folder,
    path,
    privateKey,
    signing,
    open: (leastFreeBytes = 0) => openAuditTrail(path, { signing, leastFreeBytes }),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

export function entryOf(index: number, more: Partial<AuditEntry> = {}): AuditEntry {
  return { act: 'run.start', actor: 'k'.repeat(12), tenant: index % 2 === 0 ? 'even' : 'odd', sandbox: 's'.repeat(20), details: { index }, ...more }
}
