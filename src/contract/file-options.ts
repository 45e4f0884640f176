/** What calls on files may be given besides a path. The signal of a call is no matter of a schema. */
import * as z from 'zod'
import { textSchema, userNames } from './spec.js'

const offsetSchema = z.int().min(0)
export const modeSchema = z.int().min(0).max(0o7777)
const user = z.enum(userNames).optional()
const flag = z.boolean().optional()
const glob = textSchema.optional()
const depthSchema = z.custom<number>(
  (value) => value === Infinity || (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 2 ** 31),
  'must be a whole number from 1, or Infinity',
)

export const fileOptionsSchema = z.strictObject({ user })
export const readOptionsSchema = z.strictObject({ user, offset: offsetSchema.optional(), length: offsetSchema.optional() })
export const writeOptionsSchema = z
  .strictObject({ user, mode: modeSchema.optional(), append: flag, atomic: flag, exclusive: flag })
  .refine(({ append, atomic }) => !(append === true && atomic === true), { path: ['atomic'], message: 'cannot be had together with append' })
export const listOptionsSchema = z.strictObject({ user, depth: depthSchema.optional(), glob, hidden: flag })
export const mkdirOptionsSchema = z.strictObject({ user, mode: modeSchema.optional() })
export const copyOptionsSchema = z.strictObject({ user, exclusive: flag })
export const removeOptionsSchema = z.strictObject({ user, recursive: flag })
export const watchOptionsSchema = z.strictObject({ user, recursive: flag })
export const searchOptionsSchema = z.strictObject({
  user,
  regex: flag,
  ignoreCase: flag,
  glob,
  hidden: flag,
  limit: z.int().min(1).max(1_000_000).optional(),
})

/** Of one line: lines are what is searched. */
export const patternSchema = textSchema
  .min(1, 'must not be empty')
  .refine((pattern) => !pattern.includes('\n'), 'must not contain a line break')
  .refine((pattern) => new TextEncoder().encode(pattern).length <= 4095, 'must be at most 4095 bytes')
