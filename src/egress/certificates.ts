import { createHash, X509Certificate } from 'node:crypto'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { draftIn, sweepDrafts } from '../sys/draft.js'
import type { Authority } from './authority.js'
import { hostAuthorities } from './tls.js'

/**
 * What programs inside are to trust, as a file: what the host trusts, the authority of this installation, and more, as PEM. One for each key that an authority has, so
 * that nobody's is replaced by another's.
 */
export function writeCertificates(folder: string, { certificate }: Pick<Authority, 'certificate'>, more: readonly string[] = []): string {
  const key = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' })
  const path = join(folder, `certificates-${createHash('sha256').update(key).digest('hex').slice(0, 16)}.pem`)
  const text = [...hostAuthorities(), certificate, ...more].map((each) => `${each.trimEnd()}\n`).join('')
  sweepDrafts(folder)
  const draft = draftIn(folder)
  try {
    // Whoever opens it finds the one before or this one, and nothing in between.
    writeFileSync(draft, text, { mode: 0o644, flag: 'wx' })
    renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
  return path
}
