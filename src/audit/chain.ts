/** How records hang together: each is hashed over its canonical form, which has the hash of the one before it. Pure. */
import { createHash } from 'node:crypto'
import { type AuditEntry, type AuditRecord, auditRecordSchema } from '../contract/audit.js'
import { canonicalJson, presentable } from '../contract/canonical-json.js'

/** The newest record of a chain; of an empty one number 0. */
export interface ChainEnd {
  readonly number: number
  readonly hash: string
}

export const chainStart: ChainEnd = { number: 0, hash: '0'.repeat(64) }

/** A record, and the one text that it has. */
export interface Link {
  readonly record: AuditRecord
  readonly text: string
}

/** The record that follows. */
export function linkAfter({ number, hash }: ChainEnd, entry: AuditEntry, at: string): Link {
  const unhashed = { ...(presentable(entry) as AuditEntry), number: number + 1, at, previous: hash }
  const printed = Object.fromEntries(Object.entries(unhashed).map(([name, value]) => [name, canonicalJson(value)]))
  const own = sha256(joined(printed))
  return { record: { ...unhashed, hash: own }, text: joined({ ...printed, hash: canonicalJson(own) }) }
}

/** The canonical form of an object, of those of its values: each is printed once, though the record has one text without its hash and one with it. */
function joined(printed: Readonly<Record<string, string>>): string {
  const names = Object.keys(printed).sort()
  return `{${names.map((name) => `${canonicalJson(name)}:${printed[name]}`).join(',')}}`
}

/** What is wrong with a text as the record after this one. */
export function linkProblem(text: string, { number, hash }: ChainEnd): { readonly record: AuditRecord } | { readonly why: string } {
  const parsed = parseRecord(text)
  if (parsed === undefined) return { why: 'it cannot be read' }
  const { hash: told, ...unhashed } = parsed
  if (canonicalJson(parsed) !== text) return { why: 'it is not written as records are' }
  if (parsed.number !== number + 1) return { why: `it says that it is number ${parsed.number}` }
  if (sha256(canonicalJson(unhashed)) !== told) return { why: 'its content is not what it was hashed from' }
  if (parsed.previous !== hash) return { why: 'it does not follow the record before it' }
  return { record: parsed }
}

export function parseRecord(text: string): AuditRecord | undefined {
  try {
    return auditRecordSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

export function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}
