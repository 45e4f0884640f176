/** What calls on files may be given besides a path. The signal of a call is no matter of a schema. */
import * as z from 'zod'
import { deferred } from './deferred.js'
import { textSchema } from './spec.js'
import { userNames } from './spec-words.js'

const offsetSchema = deferred(() => z.int().min(0))
export const modeSchema = deferred(() => z.int().min(0).max(0o7777))
const user = deferred(() => z.enum(userNames).optional())
const flag = deferred(() => z.boolean().optional())
const glob = deferred(() => textSchema.optional())
const depthSchema = deferred(() =>
  z.custom<number>(
    (value) => value === Infinity || (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 2 ** 31),
    'must be a whole number from 1, or Infinity',
  ),
)

export const fileOptionsSchema = deferred(() => z.strictObject({ user }))
export const readOptionsSchema = deferred(() => z.strictObject({ user, offset: offsetSchema.optional(), length: offsetSchema.optional() }))
export const writeOptionsSchema = deferred(() =>
  z
    .strictObject({ user, mode: modeSchema.optional(), append: flag, atomic: flag, exclusive: flag })
    .refine(({ append, atomic }) => !(append === true && atomic === true), { path: ['atomic'], message: 'cannot be had together with append' }),
)
export const listOptionsSchema = deferred(() => z.strictObject({ user, depth: depthSchema.optional(), glob, hidden: flag }))
export const mkdirOptionsSchema = deferred(() => z.strictObject({ user, mode: modeSchema.optional() }))
export const copyOptionsSchema = deferred(() => z.strictObject({ user, exclusive: flag }))
export const removeOptionsSchema = deferred(() => z.strictObject({ user, recursive: flag }))
export const watchOptionsSchema = deferred(() => z.strictObject({ user, recursive: flag }))
export const searchOptionsSchema = deferred(() =>
  z.strictObject({
    user,
    regex: flag,
    ignoreCase: flag,
    glob,
    hidden: flag,
    limit: z.int().min(1).max(1_000_000).optional(),
  }),
)

/** Of one line: lines are what is searched. */
export const patternSchema = deferred(() =>
  textSchema
    .min(1, 'must not be empty')
    .refine((pattern) => !pattern.includes('\n'), 'must not contain a line break')
    .refine((pattern) => new TextEncoder().encode(pattern).length <= 4095, 'must be at most 4095 bytes'),
)
