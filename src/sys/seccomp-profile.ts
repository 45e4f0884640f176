import { constants } from 'node:os'
import * as z from 'zod'
import { SandboxError } from '../contract/errors.js'
import { parseJson } from '../contract/json-text.js'
import { printable } from '../contract/printable.js'

/** A seccomp profile in Docker's JSON format, read once and checked wholly. */

const actions = {
  SCMP_ACT_ALLOW: 'allow',
  SCMP_ACT_LOG: 'log',
  SCMP_ACT_TRAP: 'trap',
  SCMP_ACT_KILL: 'kill-thread',
  SCMP_ACT_KILL_THREAD: 'kill-thread',
  SCMP_ACT_KILL_PROCESS: 'kill-process',
  SCMP_ACT_ERRNO: 'errno',
} as const

const operators = {
  SCMP_CMP_NE: 'ne',
  SCMP_CMP_LT: 'lt',
  SCMP_CMP_LE: 'le',
  SCMP_CMP_EQ: 'eq',
  SCMP_CMP_GE: 'ge',
  SCMP_CMP_GT: 'gt',
  SCMP_CMP_MASKED_EQ: 'masked-eq',
} as const

function oneOf<Value>(table: Readonly<Record<string, Value>>, refused: Readonly<Record<string, string>> = {}) {
  return z.string().transform((name, context): Value => {
    const value = Object.hasOwn(table, name) ? table[name] : undefined
    if (value !== undefined) return value
    const message = refused[name] ?? `expected one of ${Object.keys(table).join(', ')}, got '${printable(name.slice(0, 40))}'`
    context.issues.push({ code: 'custom', message, input: name })
    return z.NEVER
  })
}

const actionSchema = oneOf(actions, {
  SCMP_ACT_TRACE: 'SCMP_ACT_TRACE needs a tracer, and there is none',
  SCMP_ACT_NOTIFY: 'SCMP_ACT_NOTIFY needs a listener, and there is none',
})

const errnoNumberSchema = z.int().min(0).max(4095)
const errnoNameSchema = z.string().transform((name, context): number => {
  const number = Object.hasOwn(constants.errno, name) ? constants.errno[name as keyof typeof constants.errno] : undefined
  if (number !== undefined) return number
  context.issues.push({ code: 'custom', message: `expected the name of an error, such as EPERM, got '${printable(name.slice(0, 40))}'`, input: name })
  return z.NEVER
})
/** JSON numbers above 2^53 are rounded when parsed, and a rounded mask would be another mask. */
const wordSchema = z.int('must be a whole number that JSON holds exactly (at most 2^53 - 1)').min(0)

const argumentSchema = z.strictObject({
  index: z.int().min(0).max(5),
  value: wordSchema,
  valueTwo: wordSchema.default(0),
  op: oneOf(operators),
})

const filterSchema = z.strictObject({
  caps: z.array(z.string().regex(/^CAP_[A-Z_]+$/, 'must be the name of a capability, such as CAP_SYS_ADMIN')).optional(),
  arches: z.array(z.string()).optional(),
  minKernel: z
    .string()
    .regex(/^\d+\.\d+$/, "must be a kernel version such as '4.8'")
    .optional(),
})

const callNameSchema = z.string().regex(/^[a-z0-9_]+$/, 'must be the name of a system call')

const ruleSchema = z
  .strictObject({
    name: callNameSchema.optional(),
    names: z.array(callNameSchema).min(1).optional(),
    action: actionSchema,
    errnoRet: errnoNumberSchema.nullish(),
    errno: errnoNameSchema.optional(),
    args: z.array(argumentSchema).nullish(),
    comment: z.string().optional(),
    includes: filterSchema.optional(),
    excludes: filterSchema.optional(),
    /** Ours: a name that nobody knows is left out, not an error. */
    optional: z.boolean().default(false),
  })
  .refine((rule) => (rule.name === undefined) !== (rule.names === undefined), "must have either 'names' or the older 'name'")

const noFlags = z.array(z.string()).max(0, 'the warden loads the filter without flags').optional()

const profileSchema = z.strictObject({
  $schema: z.string().optional(),
  defaultAction: actionSchema,
  defaultErrnoRet: errnoNumberSchema.nullish(),
  defaultErrno: errnoNameSchema.optional(),
  /** Checked for shape only: the filter is always for the machine's own architecture, and every other entry point is closed. */
  architectures: z.array(z.string()).optional(),
  archMap: z.array(z.strictObject({ architecture: z.string(), subArchitectures: z.array(z.string()).nullish() })).nullish(),
  flags: noFlags,
  syscalls: z.array(ruleSchema).nullish(),
})

export type SeccompProfile = z.output<typeof profileSchema>
export type SeccompRule = z.output<typeof ruleSchema>
export type SeccompCondition = z.output<typeof argumentSchema>
export type SeccompAction = z.output<typeof actionSchema>
export type SeccompRuleFilter = z.output<typeof filterSchema>

/** `source` is how errors name the profile, such as its path. */
export function parseSeccompProfile(text: string, source: string): SeccompProfile {
  const json = parseJson(text, `seccomp profile ${source}`)
  const parsed = profileSchema.safeParse(json)
  if (parsed.success) return parsed.data
  const unknown = parsed.error.issues.filter(({ code }) => code === 'unrecognized_keys')
  // A field that is missing is often the one that was misspelt.
  const told = unknown.length > 0 ? unknown : parsed.error.issues
  throw new SandboxError('invalid', `seccomp profile ${source}: ${told.map(describeIssue).join('; ')}`)
}

function describeIssue(issue: z.core.$ZodIssue): string {
  const place = issue.path.map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${String(part)}`)).join('')
  const unknown = issue.code === 'unrecognized_keys' ? `unknown field ${issue.keys.map((key) => `'${printable(key)}'`).join(', ')}` : issue.message
  return place === '' ? unknown : `${place}: ${unknown}`
}
