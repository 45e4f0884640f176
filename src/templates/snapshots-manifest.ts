/**
 * The manifest of a snapshot: a line of JSON that says what it is, then one for each entry, in the order of the archive, always with the same names in the same
 * order. Its SHA-256 is the snapshot's id, so that equal content has one name and a damaged line is noticed.
 */
import * as z from 'zod'
import { deferred } from '../contract/deferred.js'
import { type ManifestEntry, manifestTypes } from '../contract/snapshot-store.js'

const bytesSchema = deferred(() => z.union([z.string(), z.strictObject({ hex: z.string().regex(/^(?:[0-9a-f]{2})+$/) })]))

const lineSchema = deferred(() =>
  z.strictObject({
    path: bytesSchema,
    type: z.enum(manifestTypes),
    mode: z.int().min(0).max(0o1777),
    uid: z.int().min(0),
    gid: z.int().min(0),
    size: z.int().min(0).optional(),
    hash: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .optional(),
    target: bytesSchema.optional(),
    sameAs: bytesSchema.optional(),
    hides: z.literal(true).optional(),
  }),
)

export function manifestHead({ template, templateId }: { readonly template: string; readonly templateId?: string | undefined }): string {
  return `${JSON.stringify({ schema: 'glovebox-snapshot/1', template, ...(templateId !== undefined && { templateId }) })}\n`
}

export function manifestLine({ path, type, mode, uid, gid, size, hash, target, sameAs, hides }: ManifestEntry): string {
  const line: z.input<typeof lineSchema> = {
    path: shown(path),
    type,
    mode,
    uid,
    gid,
    ...(type === 'file' && { size, hash }),
    ...(type === 'link' && { target: shown(target) }),
    ...(sameAs !== '' && { sameAs: shown(sameAs) }),
    ...(hides && { hides }),
  }
  return `${JSON.stringify(line)}\n`
}

/** Throws when the text is no line of a manifest. */
export function parseManifestLine(text: string): ManifestEntry {
  const { path, type, mode, uid, gid, size = 0, hash = '', target = '', sameAs = '', hides } = lineSchema.parse(JSON.parse(text))
  const goal = bytesOf(target)
  const told = { path: bytesOf(path), type, mode, uid, gid, size: type === 'link' ? goal.length : size, hash, target: goal, sameAs: bytesOf(sameAs) }
  return hides ? { ...told, hides } : told
}

/** As text where it is some, so that people can read it. */
function shown(latin1: string): z.input<typeof bytesSchema> {
  const bytes = Buffer.from(latin1, 'latin1')
  const text = bytes.toString('utf8')
  return Buffer.from(text, 'utf8').equals(bytes) ? text : { hex: bytes.toString('hex') }
}

function bytesOf(value: z.output<typeof bytesSchema>): string {
  return (typeof value === 'string' ? Buffer.from(value, 'utf8') : Buffer.from(value.hex, 'hex')).toString('latin1')
}
