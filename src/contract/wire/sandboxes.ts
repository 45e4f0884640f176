import * as z from 'zod'
import { limitsSchema } from '../limits.js'
import { receiptSchema } from '../receipt.js'
import { specSchema } from '../spec.js'
import { tiers } from '../spec-words.js'
import { errorEvent, filterQuery, flagSchema, jsonObject, pageOf, pageQuery, pathSchema, type Shape, timeSchema } from './pieces.js'
import { endingReply, networkRecord, networkSummary } from './pieces-of-runs.js'

export const infoReply = z.strictObject({
  id: z.string(),
  state: z.enum(['running', 'paused', 'closed']),
  /** As it was asked for and completed, in base units. */
  spec: jsonObject,
  templateId: z.string().optional(),
  imageDigest: z.string().optional(),
  pool: z.enum(['hit', 'miss']).optional(),
  tenant: z.string().optional(),
  driver: z.string(),
  tier: z.enum(tiers),
  createdAt: timeSchema,
  expiresAt: timeSchema,
  unenforced: z.array(z.strictObject({ limit: z.string(), why: z.string() })),
  clamped: z.array(z.strictObject({ field: z.string(), asked: z.json(), given: z.json(), policy: z.string() })),
})

const durationBody = z.strictObject({ duration: z.union([z.string(), z.number()]) })
const count = z.number().nullable()

export const sandboxEvent = z.union([
  z.strictObject({ type: z.literal('exit'), at: timeSchema, pid: z.int(), tag: z.string().optional(), ending: endingReply }),
  z.strictObject({ type: z.enum(['paused', 'resumed', 'expired', 'limited', 'missed', 'closed']), at: timeSchema, reason: z.string() }),
  z.strictObject({ type: z.literal('denied'), at: timeSchema, reason: z.string(), attempt: networkRecord }),
  errorEvent,
])

const entryState = z.enum(['file', 'folder', 'link', 'removed', 'other'])

export const sandboxShapes = {
  'sandboxes.create': {
    query: z.strictObject({ approvals: flagSchema.optional(), hold: flagSchema.optional() }),
    body: specSchema,
    judged: true,
    reply: infoReply,
  },
  'sandboxes.list': { query: z.strictObject({ ...filterQuery, ...pageQuery }), reply: pageOf(infoReply) },
  'sandboxes.closeAll': {
    query: z.strictObject({ ...filterQuery, all: flagSchema.optional() }),
    reply: z.strictObject({ closed: z.int() }),
  },
  'sandboxes.get': { reply: infoReply },
  'sandboxes.close': {},
  'sandboxes.extend': { body: durationBody, reply: infoReply },
  'sandboxes.lifetime': { body: durationBody, reply: infoReply },
  'sandboxes.pause': { body: z.strictObject({ memory: z.boolean().optional() }), reply: infoReply },
  'sandboxes.resume': { body: z.strictObject({}), reply: infoReply },
  'sandboxes.limit': { body: limitsSchema, judged: true, reply: infoReply },
  'sandboxes.usage': {
    reply: z.strictObject({
      wallMs: z.number(),
      cpuMs: z.number(),
      memoryBytes: count,
      memoryPeakBytes: z.number(),
      processes: count,
      processesPeak: count,
      diskBytes: count,
      readBytes: z.number(),
      writtenBytes: z.number(),
      outputBytes: z.number(),
      runs: z.number(),
      hits: z.strictObject({ memory: count, processes: count }),
    }),
  },
  'sandboxes.receipt': { reply: receiptSchema },
  'sandboxes.events': { query: z.strictObject({ hold: flagSchema.optional() }), event: sandboxEvent },
  'sandboxes.release': { body: z.strictObject({}), reply: z.strictObject({ network: networkSummary.optional() }) },
  'sandboxes.changes': {
    query: z.strictObject({ target: z.string(), ...pageQuery }),
    reply: pageOf(
      z.strictObject({
        type: entryState,
        path: z.string(),
        mode: z.int().optional(),
        size: z.int().optional(),
        hides: z.boolean().optional(),
        target: z.string().optional(),
        why: z.string().optional(),
      }),
    ),
  },
  'urls.sign': {
    body: z.union([
      z.strictObject({ path: pathSchema, method: z.enum(['GET', 'PUT']).default('GET'), expires: z.union([z.string(), z.number()]).optional() }),
      z.strictObject({ port: z.int().min(1).max(65_535), expires: z.union([z.string(), z.number()]).optional() }),
    ]),
    reply: z.strictObject({ url: z.string(), expiresAt: timeSchema }),
  },
} satisfies Record<string, Shape>
