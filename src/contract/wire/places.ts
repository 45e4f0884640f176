/** Ports, networks, snapshots and pools. */
import * as z from 'zod'
import { languages } from '../code.js'
import { networkSchema } from '../network.js'
import { claimSchema, freshKinds, poolSchema } from '../pools.js'
import { specSchema } from '../spec.js'
import { errorEvent, flagSchema, jsonObject, pageOf, pageQuery, type Shape, timeSchema } from './pieces.js'
import { networkRecord, networkSummary } from './pieces-of-runs.js'
import { infoReply } from './sandboxes.js'

const snapshotReply = z.strictObject({
  id: z.string(),
  name: z.string().optional(),
  template: z.string(),
  templateId: z.string().optional(),
  createdAt: timeSchema,
  bytes: z.number(),
  entries: z.int(),
})

const changeReply = z.strictObject({
  type: z.enum(['added', 'changed', 'removed']),
  path: z.string(),
  pathBase64: z.string().optional(),
  entry: z.enum(['file', 'folder', 'link', 'fifo', 'socket', 'device']),
  size: z.number(),
  mode: z.int(),
})

const poolReply = z.strictObject({ id: z.string(), spec: jsonObject, size: z.int(), max: z.int() })
const since = z.string().optional()

/** What a sandbox for one use may be asked with beside its spec. */
export const takeSchema = z.strictObject({
  spec: specSchema.optional(),
  fresh: z.enum(freshKinds).optional(),
  ready: z.boolean().optional(),
  language: z.enum(languages).optional(),
  approvals: z.boolean().optional(),
})

export const placeShapes = {
  'ports.wait': { body: z.strictObject({ timeout: z.union([z.string(), z.number()]).optional() }) },
  'ports.tunnel': {},
  'ports.proxy': {},
  'signed.use': {},
  'network.update': { body: networkSchema, judged: true, reply: infoReply },
  'network.log': { event: z.union([networkRecord, errorEvent]) },
  'network.summary': { query: z.strictObject({ settled: flagSchema.optional() }), reply: networkSummary },
  'snapshots.take': { body: z.strictObject({ name: z.string().optional() }), reply: snapshotReply },
  'snapshots.diff': { query: z.strictObject({ since, ...pageQuery }), reply: pageOf(changeReply) },
  'snapshots.export': { query: z.strictObject({ since }) },
  'snapshots.fork': {
    body: z.strictObject({ count: z.number().optional(), name: z.string().optional(), metadata: z.record(z.string(), z.string()).optional() }),
    reply: z.strictObject({ items: z.array(infoReply) }),
  },
  'snapshots.list': { query: z.strictObject(pageQuery), reply: pageOf(snapshotReply) },
  'snapshots.remove': { reply: z.strictObject({ removed: z.boolean() }) },
  'pools.create': { body: z.strictObject({ spec: specSchema.optional(), settings: poolSchema.optional() }), judged: true, reply: poolReply },
  'pools.list': { query: z.strictObject(pageQuery), reply: pageOf(poolReply) },
  'pools.status': {
    reply: z.strictObject({ total: z.int(), available: z.int(), inUse: z.int(), waiting: z.int(), failure: z.string().optional() }),
  },
  'pools.acquire': {
    query: z.strictObject({ approvals: flagSchema.optional() }),
    body: claimSchema,
    judged: true,
    reply: infoReply,
  },
  'pools.close': {},
  'pools.take': { body: takeSchema, judged: true, reply: infoReply },
} satisfies Record<string, Shape>
