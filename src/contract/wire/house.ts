/** Keys, tenants, the audit trail, and the server itself. */
import * as z from 'zod'
import { auditActs, auditHeadSchema, auditRecordSchema } from '../audit.js'
import { keyRequestSchema, scopes, tenantChangeSchema, tenantIdSchema, tenantInputSchema, quotaNames } from '../tenants.js'
import { countTextSchema, errorEvent, flagSchema, jsonObject, pageOf, pageQuery, type Shape, timeSchema } from './pieces.js'

const keyReply = z.strictObject({
  id: z.string(),
  tenant: z.string(),
  scopes: z.array(z.enum(scopes)),
  name: z.string().optional(),
  createdAt: timeSchema,
  expiresAt: timeSchema.optional(),
  revokedAt: timeSchema.optional(),
  lastUsedAt: z.string().optional(),
})

const tenantReply = z.strictObject({
  id: z.string(),
  name: z.string().optional(),
  policy: z.union([z.string(), jsonObject]).optional(),
  quotas: jsonObject,
  audit: jsonObject,
  createdAt: timeSchema,
})

const quotaUse = z.strictObject({ used: z.number(), limit: z.number().nullable() })
const usageReply = z.record(z.enum(quotaNames), quotaUse)
const auditFilter = {
  tenant: z.string().optional(),
  agent: z.string().optional(),
  sandbox: z.string().optional(),
  actor: z.string().optional(),
  act: z.enum(auditActs).optional(),
  request: z.string().optional(),
  since: timeSchema.optional(),
  until: timeSchema.optional(),
}

const eventQuery = z.strictObject({
  after: z.string().max(40).optional(),
  types: z.string().max(400).optional(),
  sandbox: z.string().max(40).optional(),
  agent: z.string().max(200).optional(),
  tenant: tenantIdSchema.optional(),
})

export const houseShapes = {
  'calls.cancel': {},
  'tickets.create': { body: z.strictObject({}), reply: z.strictObject({ ticket: z.string(), expiresAt: timeSchema }) },
  'templates.list': { query: z.strictObject(pageQuery), reply: pageOf(jsonObject) },
  'templates.get': { reply: jsonObject },
  'keys.create': { body: keyRequestSchema, judged: true, reply: keyReply.extend({ secret: z.string() }) },
  'keys.list': { query: z.strictObject({ tenant: z.string().optional(), all: flagSchema.optional(), ...pageQuery }), reply: pageOf(keyReply) },
  'keys.revoke': { reply: z.strictObject({ revoked: z.boolean() }) },
  'tenants.create': { body: tenantInputSchema, judged: true, reply: tenantReply },
  'tenants.list': { query: z.strictObject(pageQuery), reply: pageOf(tenantReply) },
  'tenants.get': { reply: tenantReply },
  'tenants.update': { body: tenantChangeSchema, judged: true, reply: tenantReply },
  'tenants.remove': { reply: z.strictObject({ removed: z.boolean() }) },
  'tenants.usage': { reply: usageReply },
  'usage.own': { reply: usageReply },
  'audit.list': {
    query: z.strictObject({ ...auditFilter, from: z.enum(['newest', 'oldest']).optional(), ...pageQuery }),
    reply: pageOf(auditRecordSchema),
  },
  'audit.tail': { query: z.strictObject({ ...auditFilter, last: countTextSchema.optional() }), event: z.union([auditRecordSchema, errorEvent]) },
  'audit.head': { reply: auditHeadSchema },
  'audit.verify': { body: z.strictObject({ anchor: auditHeadSchema.optional() }), reply: jsonObject },
  'audit.export': {},
  'house.events': { query: eventQuery, event: jsonObject },
  'house.probe': { reply: z.strictObject({ items: z.array(jsonObject) }) },
  'house.openapi': { reply: jsonObject },
  'house.health': { reply: z.strictObject({ status: z.literal('ok') }) },
  'house.ready': { reply: z.strictObject({ ready: z.boolean() }) },
  'house.metrics': {},
} satisfies Record<string, Shape>
