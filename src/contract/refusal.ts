import type * as z from 'zod'
import { SandboxError } from './errors.js'
import { kindOf, plainObjectRefusal } from './plain-object.js'
import { printable } from './printable.js'

type Issue = z.core.$ZodIssue

const mostProblems = 5

/** What is parsed: how messages call the whole of it, and which of its fields are objects themselves. */
interface Subject {
  readonly what: string
  readonly objects: readonly string[]
}

/** A plain object once parsed; otherwise SandboxError('invalid') naming each field and what is wrong with it. */
export function parseObject<Schema extends z.ZodType>(schema: Schema, value: unknown, { what, objects }: Subject): z.output<Schema> {
  checkObject(value, what)
  for (const field of objects) {
    const inner = Object.hasOwn(value, field) ? value[field] : undefined
    if (inner !== undefined) checkObject(inner, field)
  }
  return parseWith(schema, value, what)
}

/** The schema would take the keys of an object of any kind, and pass over a key that sets a prototype, without a word. */
function checkObject(value: unknown, field: string): asserts value is Record<string, unknown> {
  const refusal = plainObjectRefusal(value, field)
  if (refusal) throw refusal
  if (Object.hasOwn(value as object, '__proto__')) throw new SandboxError('invalid', `${field}.__proto__: is not a possible name`)
}

/** The value once parsed; otherwise SandboxError('invalid') naming each field and what is wrong with it. */
export function parseWith<Schema extends z.ZodType>(schema: Schema, value: unknown, what: string): z.output<Schema> {
  const parsed = schema.safeParse(value, { reportInput: true })
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.filter(isFirstOfBounds).flatMap((issue) => describe(issue, what))
  const rest = problems.length > mostProblems ? `; and ${problems.length - mostProblems} more` : ''
  throw new SandboxError('invalid', problems.slice(0, mostProblems).join('; ') + rest)
}

/** A number may be above two bounds, of which one says enough. */
function isFirstOfBounds(issue: Issue, index: number, all: readonly Issue[]): boolean {
  const isSame = (other: Issue): boolean => other.code === issue.code && other.path.join('.') === issue.path.join('.')
  return issue.code !== 'too_big' || all.findLastIndex(isSame) === index
}

function describe(issue: Issue, what: string): string[] {
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => `${fieldName([...issue.path, key], what)}: is not a known field`)
    case 'invalid_key':
      return issue.issues.map((inner) => `${fieldName(issue.path, what)}: ${wordsOf(inner)}`)
    case 'invalid_union':
      if (fitting(issue) !== undefined) return (fitting(issue) ?? []).flatMap((inner) => describe({ ...inner, path: [...issue.path, ...inner.path] }, what))
      return [`${fieldName(issue.path, what)}: ${issue.message === 'Invalid input' ? unionWords(issue) : wordsOf(issue)}`]
    default:
      return [`${fieldName(issue.path, what)}: ${wordsOf(issue)}`]
  }
}

/** What is wrong by the one of the possible kinds that the value is of. */
function fitting({ errors }: z.core.$ZodIssueInvalidUnion): readonly Issue[] | undefined {
  const isOtherKind = ({ code, path }: Issue): boolean => path.length === 0 && (code === 'invalid_type' || code === 'invalid_value')
  const [only, ...others] = errors.filter((issues) => !issues.some(isOtherKind))
  return others.length === 0 ? only : undefined
}

const expectedWords: Readonly<Record<string, string>> = {
  number: 'a finite number',
  int: 'a whole number',
  string: 'a string',
  boolean: 'true or false',
  array: 'an array',
  object: 'a plain object',
  record: 'a plain object',
}

/** All that would have been taken, and what was given. */
function unionWords(issue: z.core.$ZodIssueInvalidUnion): string {
  const expected = issue.errors
    .flat()
    .flatMap((inner) =>
      inner.code === 'invalid_type' ? [expectedWords[inner.expected] ?? inner.expected] : inner.code === 'invalid_value' ? inner.values.map(String) : [],
    )
  return `expected ${[...new Set(expected)].join(' or ')}, got ${kindOf(issue.input)}`
}

/** What is expected and what was given; of zod's own sentences only what no case here says better, without their heading. */
function wordsOf(issue: Issue): string {
  if ((issue.code === 'too_small' || issue.code === 'too_big') && typeof issue.input === 'number') {
    const [bound, edge] = issue.code === 'too_small' ? ['least', issue.minimum] : ['most', issue.maximum]
    return `must be at ${bound} ${edge}, got ${issue.input}`
  }
  if (issue.code === 'invalid_type' && issue.message.startsWith('Invalid input: ')) {
    return `expected ${expectedWords[issue.expected] ?? issue.expected}, got ${givenWords(issue.input)}`
  }
  if (issue.code === 'invalid_value' && issue.message.startsWith('Invalid ')) {
    return `expected one of ${issue.values.map(String).join(', ')}, got ${givenWords(issue.input)}`
  }
  if (issue.code === 'too_small' && issue.minimum === 1 && /^Too small/.test(issue.message)) return 'must not be empty'
  if (issue.code === 'too_big' && typeof issue.input === 'string' && /^Too big/.test(issue.message)) return `must have at most ${issue.maximum} characters`
  const words = issue.message.replace(/^(?:Invalid [a-z]+|Too small|Too big): /, '').replace('received', 'got')
  return words.charAt(0).toLowerCase() + words.slice(1)
}

/** Short values as they are, of others only what they are. */
function givenWords(value: unknown): string {
  if (typeof value === 'string') return `'${printable(value)}'`
  if (plainObjectRefusal(value, '') === undefined) return 'an object'
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : kindOf(value)
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
