import type { z } from 'zod'
import { SandboxError } from '../contract/errors.js'
import { defaultLimits, limitsSchema } from '../contract/limits.js'
import { type RunRequest, runRequestSchema } from '../contract/run.js'
import { envSchema, pathSchema, type SpecInput, specSchema, tiers, userNames } from '../contract/spec.js'

/** Flags as commander hands them over: text, as the user typed it. */
export interface RunFlags {
  readonly env?: readonly string[]
  readonly workdir?: string
  readonly user?: string
  readonly memory?: string
  readonly cpus?: string
  readonly timeout?: string
  readonly disk?: string
  readonly pids?: string
  readonly output?: string
  readonly driver?: string
  readonly minTier?: string
  readonly template?: string
  readonly name?: string
  readonly receipt?: string
  readonly json?: true
  readonly quiet?: true
}

export interface ParsedRun {
  readonly spec: SpecInput
  readonly request: RunRequest
}

const defaultLifetimeMs = 300_000
const createAndCloseMs = 60_000

/** The flags as a spec and a request. What is wrong is refused here, by the name of the flag. */
export function parseRunFlags(argv: readonly string[], flags: RunFlags): ParsedRun {
  const time = parse('--timeout', limitsSchema.shape.time, flags.timeout)
  const limits = {
    memory: parse('--memory', limitsSchema.shape.memory, flags.memory),
    cpus: parse('--cpus', limitsSchema.shape.cpus, number('--cpus', flags.cpus, '0.5')),
    time,
    disk: parse('--disk', limitsSchema.shape.disk, flags.disk),
    processes: parse('--pids', limitsSchema.shape.processes, number('--pids', flags.pids, '64')),
    output: parse('--output', limitsSchema.shape.output, flags.output),
  }
  const spec = {
    template: parse('--template', specSchema.shape.template, flags.template),
    name: parse('--name', specSchema.shape.name, flags.name),
    limits: stated(limits),
    // The run is all there is to this sandbox, so it must not expire before its time is up.
    lifetime: Math.max(defaultLifetimeMs, (time ?? defaultLimits.timeMs) + createAndCloseMs),
    user: oneOf('--user', userNames, flags.user),
    driver: parse('--driver', specSchema.shape.driver, flags.driver),
    minTier: oneOf('--min-tier', tiers, flags.minTier),
  }
  const request = {
    command: parse('COMMAND', runRequestSchema.shape.command, argv) ?? [],
    env: parseEnv(flags.env ?? []),
    cwd: parse('--workdir', pathSchema, flags.workdir),
  }
  return { spec: stated(spec), request: stated(request) }
}

function parseEnv(assignments: readonly string[]): Record<string, string> {
  const env: Record<string, string> = {}
  for (const assignment of assignments) {
    const at = assignment.indexOf('=')
    if (at === 0) throw refusal(`--env ${assignment}`, 'has no name')
    if (at === -1) {
      throw new SandboxError('invalid', `--env ${assignment}: has no value, and nothing is taken from the host's environment by itself`, {
        hint: `glovebox run --env ${assignment}="$${assignment}" -- …`,
      })
    }
    // Not by assignment, which would lose a variable named __proto__ without a word; the engine refuses it by its name.
    Object.defineProperty(env, assignment.slice(0, at), { value: assignment.slice(at + 1), enumerable: true, configurable: true, writable: true })
  }
  parse('--env', envSchema, env)
  return env
}

function parse<Schema extends z.ZodType>(flag: string, schema: Schema, value: unknown): z.output<Schema> | undefined {
  if (value === undefined) return undefined
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw refusal(flag, issue === undefined ? 'is wrong' : problemOf(issue, value))
}

/** In the words of a command line where the schema's are those of a library. */
function problemOf(issue: z.core.$ZodIssue, value: unknown): string {
  if (issue.code === 'invalid_type' && typeof value === 'number') return `must be a whole number, got ${value}`
  if (issue.code !== 'too_small' && issue.code !== 'too_big') return issue.message
  if (issue.origin === 'string') return issue.code === 'too_small' ? 'must not be empty' : `must be at most ${issue.maximum} characters`
  return `must be ${issue.code === 'too_small' ? `at least ${issue.minimum}` : `at most ${issue.maximum}`}, got ${String(value)}`
}

function oneOf<Name extends string>(flag: string, names: readonly Name[], value: string | undefined): Name | undefined {
  if (value === undefined) return undefined
  const found = names.find((name) => name === value)
  if (found === undefined) throw refusal(flag, `must be one of ${names.join(', ')}, got '${value}'`)
  return found
}

function refusal(flag: string, problem: string): SandboxError {
  return new SandboxError('invalid', `${flag}: ${problem}`, { hint: 'glovebox run --help' })
}

function number(flag: string, text: string | undefined, example: string): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d*\.?\d+$/.test(text)) throw refusal(flag, `expected a number such as '${example}', got '${text.slice(0, 40)}'`)
  return Number(text)
}

type Stated<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function stated<T extends object>(values: T): Stated<T> & { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never
}
