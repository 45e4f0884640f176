/** What the shapes of several resources are made of. */
import * as z from 'zod'
import { userNames } from '../spec-words.js'
import { fromBase64 } from './frames.js'

/** What a route is asked with and what it answers. Replies are described for readers and tests; what a server of ours sends needs no judge. */
export interface Shape {
  readonly query?: z.ZodType
  readonly body?: z.ZodType
  /** The body is handed on as it came: the platform parses it itself, with the same schema, and fills in what is not stated. */
  readonly judged?: true
  readonly reply?: z.ZodType
  readonly event?: z.ZodType
}

export const flagSchema = z.enum(['true', 'false']).transform((text) => text === 'true')
export const countTextSchema = z
  .string()
  .regex(/^\d{1,15}$/, 'must be a whole number from 0')
  .transform(Number)

const base64Schema = z.string().refine((text) => fromBase64(text) !== undefined, 'must be base64')
const bytesTextSchema = base64Schema.transform((text) => fromBase64(text) ?? new Uint8Array())

/** A path of a body: text, or base64 of bytes that are none. */
export const pathSchema = z
  .union([z.string(), z.strictObject({ base64: base64Schema })], { error: "must be a string, or { base64: '…' }" })
  .transform((path) => (typeof path === 'string' ? path : (fromBase64(path.base64) ?? new Uint8Array())))

/** A path of a query: `path`, or `pathBase64`. */
export const pathQuery = { path: z.string().optional(), pathBase64: bytesTextSchema.optional() }
export const userSchema = z.enum(userNames).optional()

const mostPerPage = 1000
export const pageQuery = {
  limit: countTextSchema.refine((count) => count >= 1 && count <= mostPerPage, `must be from 1 to ${mostPerPage}`).optional(),
  cursor: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,4096}$/, "must be a page's `next`")
    .optional(),
}

export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.strictObject({ items: z.array(item), next: z.string().optional() })
}

/** `metadata` is as many times there as it has keys: `metadata=team=red`. */
export const filterQuery = {
  name: z.string().optional(),
  agent: z.string().optional(),
  metadata: z.array(z.string().regex(/^[^=]+=/, "must be 'key=value'")).optional(),
}

export const errorReply = z.strictObject({
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
  retryAfterMs: z.number().optional(),
  details: z.record(z.string(), z.json()).optional(),
})

export const timeSchema = z.iso.datetime()
export const jsonObject = z.record(z.string(), z.unknown())

/** What a stream ends with when it cannot go on. */
export const errorEvent = z.strictObject({ type: z.literal('error'), error: errorReply })
export const outputEvent = z.strictObject({
  type: z.enum(['stdout', 'stderr']),
  /** Base64. */
  data: z.string(),
  dropped: z.number().optional(),
})
