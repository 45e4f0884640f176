import type * as z from 'zod'
import { SandboxError } from '../contract/errors.js'

/** What a flag was given, by its schema; otherwise SandboxError('invalid') naming the flag. Undefined when it was not given: then the schema is not made. */
export function parseFlag<Schema extends z.ZodType>(flag: string, schema: () => Schema, value: unknown): z.output<Schema> | undefined {
  if (value === undefined) return undefined
  const parsed = schema().safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw refuseFlag(flag, issue === undefined ? 'is wrong' : problemOf(issue))
}

/** In the words of a command line where the schema's are those of a library. */
function problemOf(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'too_small' && issue.code !== 'too_big') return issue.message
  if (issue.code === 'too_small') return 'must not be empty'
  return issue.origin === 'string' ? `must be at most ${issue.maximum} characters` : `may be repeated at most ${issue.maximum} times`
}

export function oneOfFlag<Name extends string>(flag: string, names: readonly Name[], value: string | undefined): Name | undefined {
  if (value === undefined) return undefined
  const found = names.find((name) => name === value)
  if (found === undefined) throw refuseFlag(flag, `must be one of ${names.join(', ')}, got '${value.slice(0, 40)}'`)
  return found
}

export function refuseFlag(flag: string, problem: string, hint = 'glovebox run --help'): SandboxError {
  return new SandboxError('invalid', `${flag}: ${problem}`, { hint })
}
