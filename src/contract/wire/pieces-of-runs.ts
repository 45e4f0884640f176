import * as z from 'zod'
import { networkSchemes, networkVerdicts } from '../network.js'
import { timeSchema } from './pieces.js'

const number = z.number()

const outcomeReply = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('exited'), code: z.int() }),
  z.strictObject({ kind: z.literal('signaled'), signal: z.string() }),
  z.strictObject({ kind: z.literal('timed-out'), by: z.enum(['wall', 'cpu']), limitMs: number }),
  z.strictObject({ kind: z.literal('out-of-memory'), limitBytes: number }),
  z.strictObject({ kind: z.literal('output-limit'), limitBytes: number }),
  z.strictObject({ kind: z.literal('killed'), reason: z.string() }),
  z.strictObject({ kind: z.literal('not-started'), code: z.int(), reason: z.string() }),
])

const usageReply = z.strictObject({
  wallMs: number,
  cpuUserMs: number,
  cpuSystemMs: number,
  memoryPeakBytes: number,
  processesPeak: number.nullable(),
  readBytes: number,
  writtenBytes: number,
  outputBytes: number,
  hits: z.strictObject({ memory: number.nullable(), processes: number.nullable() }),
})

export { outcomeReply }

export const endingReply = z.strictObject({ outcome: outcomeReply, usage: usageReply, truncated: z.boolean() })

export const networkFacts = z.strictObject({
  sandbox: z.string(),
  host: z.string(),
  address: z.string().optional(),
  port: z.int(),
  door: z.enum(['proxy', 'direct']),
  scheme: z.enum(networkSchemes),
  method: z.string().optional(),
  path: z.string().optional(),
})

export const networkRecord = networkFacts.extend({
  time: timeSchema,
  process: z.int().optional(),
  status: z.int().optional(),
  bytesUp: number,
  bytesDown: number,
  durationMs: number,
  verdict: z.enum(networkVerdicts),
  rule: z.string(),
  reason: z.string(),
  missed: z.int().optional(),
})

const verdictCounts = { allowed: number, denied: number, failed: number }
const totals = { connections: number, bytesUp: number, bytesDown: number }

export const networkSummary = z.strictObject({
  ...totals,
  byVerdict: z.strictObject(verdictCounts),
  byHost: z.record(z.string(), z.strictObject({ ...totals, ...verdictCounts })),
  byMethod: z.record(z.string(), number),
  byStatus: z.record(z.string(), number),
  latest: z.array(networkRecord),
})
