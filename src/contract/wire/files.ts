import * as z from 'zod'
import { countTextSchema, errorEvent, flagSchema, pageOf, pageQuery, pathQuery, pathSchema, type Shape, timeSchema, userSchema } from './pieces.js'

const types = ['file', 'folder', 'link', 'fifo', 'socket', 'device'] as const

export const entryReply = z.strictObject({
  name: z.string(),
  path: z.string(),
  /** Set exactly when the path is not UTF-8. */
  pathBase64: z.string().optional(),
  type: z.enum(types),
  size: z.number(),
  mode: z.int(),
  owner: z.string(),
  group: z.string(),
  modifiedAt: timeSchema,
  accessedAt: timeSchema,
  changedAt: timeSchema,
  target: z.string().optional(),
})

export type WireEntry = z.output<typeof entryReply>

/** Written by people in octal as often as not: `0644`, or a number. */
const modeText = countTextSchema
const flag = flagSchema.optional()
const fileQuery = { ...pathQuery, user: userSchema }
const modeSchema = z.int().min(0).max(0o7777)
const twoPaths = z.strictObject({ from: pathSchema, to: pathSchema, exclusive: z.boolean().optional(), user: userSchema })

const matchReply = z.strictObject({ path: z.string(), pathBase64: z.string().optional(), line: z.int(), column: z.int(), text: z.string() })

const listQuery = {
  ...fileQuery,
  /** `all` for everything beneath. */
  depth: z.union([z.literal('all').transform(() => Infinity), countTextSchema]).optional(),
  glob: z.string().optional(),
  hidden: flag,
}

export const fileShapes = {
  'files.list': { query: z.strictObject({ ...listQuery, ...pageQuery }), reply: pageOf(entryReply), event: z.union([entryReply, errorEvent]) },
  'files.remove': { query: z.strictObject({ ...fileQuery, recursive: flag }), reply: z.strictObject({ removed: z.boolean() }) },
  'files.read': { query: z.strictObject({ ...fileQuery, offset: countTextSchema.optional(), length: countTextSchema.optional() }) },
  'files.write': {
    query: z.strictObject({ ...fileQuery, mode: modeText.optional(), append: flag, atomic: flag, exclusive: flag }),
    reply: entryReply,
  },
  'files.stat': { query: z.strictObject(fileQuery), reply: z.strictObject({ entry: entryReply.nullable() }) },
  'files.mkdir': { body: z.strictObject({ path: pathSchema, mode: modeSchema.optional(), user: userSchema }), reply: entryReply },
  'files.move': { body: twoPaths, reply: entryReply },
  'files.copy': { body: twoPaths, reply: entryReply },
  'files.symlink': { body: z.strictObject({ target: pathSchema, path: pathSchema, user: userSchema }), reply: entryReply },
  'files.chmod': { body: z.strictObject({ path: pathSchema, mode: modeSchema, user: userSchema }), reply: entryReply },
  'files.search': {
    body: z.strictObject({
      path: pathSchema,
      pattern: z.string(),
      regex: z.boolean().optional(),
      ignoreCase: z.boolean().optional(),
      glob: z.string().optional(),
      hidden: z.boolean().optional(),
      limit: z.int().min(1).max(1_000_000).optional(),
      user: userSchema,
    }),
    reply: z.strictObject({ matches: z.array(matchReply), truncated: z.boolean(), skipped: z.int() }),
  },
  'files.watch': {
    query: z.strictObject({ ...fileQuery, recursive: flag }),
    event: z.union([
      z.strictObject({ type: z.enum(['created', 'changed', 'removed']), path: z.string() }),
      z.strictObject({ type: z.literal('renamed'), path: z.string(), to: z.string() }),
      z.strictObject({ type: z.literal('overflow'), why: z.string().optional() }),
      errorEvent,
    ]),
  },
  'files.pack': { query: z.strictObject(fileQuery) },
  'files.unpack': { query: z.strictObject(fileQuery), reply: z.strictObject({ entries: z.int() }) },
} satisfies Record<string, Shape>
