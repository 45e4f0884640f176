import * as z from 'zod'
import { type AuditFilter, type AuditPageRequest, auditActs } from '../contract/audit.js'
import { deferred } from '../contract/deferred.js'
import { parseObject } from '../policy/refusal.js'

const textSchema = z.string().min(1).max(1000)

/** Times are compared as text, so they have one form. */
const timeSchema = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], { error: 'must be a time, such as 2026-01-31T12:00:00Z' })
  .transform((text) => new Date(text).toISOString())

const auditFilterSchema = deferred(() =>
  z.strictObject({
    tenant: textSchema.optional(),
    agent: textSchema.optional(),
    sandbox: textSchema.optional(),
    actor: textSchema.optional(),
    act: z.enum(auditActs).optional(),
    request: textSchema.optional(),
    since: timeSchema.optional(),
    until: timeSchema.optional(),
  }),
)

const auditPageSchema = deferred(() =>
  z.strictObject({
    cursor: z
      .string()
      .regex(/^\d{1,15}$/, "must be the 'next' of an earlier page")
      .transform(Number)
      .optional(),
    limit: z.int().min(1).max(1000).default(100),
    from: z.enum(['newest', 'oldest']).default('newest'),
  }),
)

export function parseAuditFilter(filter: unknown): AuditFilter {
  return parseObject(auditFilterSchema, filter, { what: 'filter', objects: [] }) as AuditFilter
}

export function parseAuditPage(page: AuditPageRequest) {
  const { cursor, limit, from } = parseObject(auditPageSchema, page, { what: 'page', objects: [] })
  return { after: cursor, limit, order: from }
}
