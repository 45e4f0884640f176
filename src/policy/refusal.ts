import type { z } from 'zod'
import { SandboxError } from '../contract/errors.js'

type Issue = z.core.$ZodIssue

const mostProblems = 5

/** The value once parsed; otherwise SandboxError('invalid') naming each field and what is wrong with it. */
export function parseWith<Schema extends z.ZodType>(schema: Schema, value: unknown, what: string): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.flatMap((issue) => describe(issue, what))
  const rest = problems.length > mostProblems ? `; and ${problems.length - mostProblems} more` : ''
  throw new SandboxError('invalid', problems.slice(0, mostProblems).join('; ') + rest)
}

function describe(issue: Issue, what: string): string[] {
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => `${fieldName([...issue.path, key], what)}: is not a known field`)
    case 'invalid_key':
      return issue.issues.map((inner) => `${fieldName(issue.path, what)}: ${wordsOf(inner)}`)
    default:
      return [`${fieldName(issue.path, what)}: ${wordsOf(issue)}`]
  }
}

/** zod's own sentences begin with a heading such as "Invalid input: "; ours begin with what is expected. */
function wordsOf(issue: Issue): string {
  const words = issue.message.replace(/^(?:Invalid [a-z]+|Too small|Too big): /, '').replace('received', 'got')
  return words.charAt(0).toLowerCase() + words.slice(1)
}

/** `limits.memory`, `command[3]`, or the name of the whole when the whole is wrong. */
function fieldName(path: readonly PropertyKey[], what: string): string {
  if (path.length === 0) return what
  return path.reduce<string>((name, key) => {
    if (typeof key === 'number') return `${name}[${key}]`
    const text = printable(key)
    return name === '' ? text : `${name}.${text}`
  }, '')
}

/** Keys come from strangers and end on terminals: short, and nothing in them acts. */
export function printable(value: unknown): string {
  const text = String(value)
  const shown = text.length > 60 ? `${text.slice(0, 60)}…` : text
  return shown.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\uFFFD')
}
