import * as z from 'zod'
import { codeRequestSchema, contextRequestSchema, languages } from '../code.js'
import { errorEvent, jsonObject, outputEvent, pageOf, pageQuery, type Shape, timeSchema } from './pieces.js'
import { outcomeReply } from './pieces-of-runs.js'

const contextReply = z.strictObject({
  id: z.string(),
  language: z.enum(languages),
  name: z.string().optional(),
  version: z.string(),
  cwd: z.string(),
  pid: z.int(),
  state: z.enum(['idle', 'busy', 'ended']),
  isDefault: z.boolean(),
  executions: z.int(),
  queued: z.int(),
  createdAt: timeSchema,
  restarts: z.int(),
  droppedBytes: z.number(),
  ended: outcomeReply.optional(),
})

const resultReply = z.strictObject({ isMain: z.boolean(), data: jsonObject, cut: z.array(z.string()) })

const errorOfCode = z.strictObject({
  name: z.string(),
  value: z.string(),
  traceback: z.string(),
  fullTraceback: z.string(),
  line: z.int().optional(),
  column: z.int().optional(),
})

const artifactReply = z.strictObject({
  path: z.string(),
  change: z.enum(['created', 'changed']),
  size: z.number(),
  mime: z.string(),
  hash: z.string(),
})

const endingReply = z.strictObject({
  status: z.enum(['ok', 'error', 'exit', 'interrupted', 'timed-out', 'crashed']),
  context: z.string(),
  language: z.enum(languages),
  number: z.int(),
  code: z.int().optional(),
  error: errorOfCode.optional(),
  outcome: outcomeReply.optional(),
  isStateKept: z.boolean(),
  wallMs: z.number(),
  artifacts: z.array(artifactReply),
  artifactsMissing: z.string().optional(),
  resultsDropped: z.int().optional(),
  outputDropped: z.number().optional(),
})

const version = z.union([z.strictObject({ available: z.literal(true), version: z.string() }), z.strictObject({ available: z.literal(false), why: z.string() })])

export const codeShapes = {
  'code.languages': { reply: z.strictObject({ python: version, javascript: version, typescript: version, bash: version }) },
  'code.execute': {
    body: codeRequestSchema,
    judged: true,
    reply: z.strictObject({ ...endingReply.shape, stdout: z.string(), stderr: z.string(), truncated: z.boolean(), results: z.array(resultReply) }),
    event: z.union([
      z.strictObject({ type: z.literal('begun'), execution: z.string() }),
      outputEvent,
      z.strictObject({ type: z.literal('result'), result: resultReply }),
      z.strictObject({ type: z.literal('ask'), prompt: z.string(), isSecret: z.boolean() }),
      z.strictObject({ type: z.literal('ended'), ending: endingReply }),
      errorEvent,
    ]),
  },
  'code.answer': { body: z.strictObject({ line: z.string().nullable() }) },
  'code.interrupt': { body: z.strictObject({}) },
  'contexts.create': { body: contextRequestSchema, judged: true, reply: contextReply },
  'contexts.list': { query: z.strictObject(pageQuery), reply: pageOf(contextReply) },
  'contexts.restart': { body: z.strictObject({}), reply: contextReply },
  'contexts.remove': { reply: z.strictObject({ removed: z.boolean() }) },
} satisfies Record<string, Shape>
