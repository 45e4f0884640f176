import { resolve } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import { isPlainCommand } from '../contract/plain-command.js'
import { defaultLimits } from '../contract/limit-words.js'
import type { Policy } from '../contract/policy.js'
import { type RunRequest, runRequestSchema } from '../contract/run.js'
import { commandsSchema, envSchema, pathSchema, type SpecInput, specSchema } from '../contract/spec.js'
import { rootModes, specDefaults, tiers, userNames } from '../contract/spec-words.js'
import { oneOfFlag, parseFlag, refuseFlag } from './flag-values.js'
import { type LimitFlags, parseLimitFlags } from './limit-flags.js'
import { parseMountFlag } from './mount-flag.js'
import { type NetworkFlags, parseNetworkFlags } from './network-flags.js'
import type { TransferFlags } from './transfer-flags.js'

/** Flags as commander hands them over: text, as the user typed it. */
export interface RunFlags extends LimitFlags, NetworkFlags, TransferFlags {
  readonly env?: readonly string[]
  readonly workdir?: string
  readonly user?: string
  readonly command?: readonly string[]
  readonly root?: string
  readonly mount?: readonly string[]
  readonly seccomp?: string
  readonly policy?: string
  readonly driver?: string
  readonly minTier?: string
  readonly template?: string
  readonly name?: string
  readonly receipt?: string
  readonly here?: true
  readonly json?: true
  readonly quiet?: true
}

export interface ParsedRun {
  readonly spec: SpecInput
  readonly request: RunRequest
}

type Capping = Pick<Policy, 'defaults' | 'ceiling'>

/** The flags as a spec and a request. What is wrong is refused here, by the name of the flag. `policy` is what will hold it. */
export function parseRunFlags(argv: readonly string[], flags: RunFlags, policy: Capping = { defaults: {}, ceiling: {} }): ParsedRun {
  const limits = parseLimitFlags(flags)
  const spec = {
    template: parseFlag('--template', () => specSchema.shape.template, flags.template),
    name: parseFlag('--name', () => specSchema.shape.name, flags.name),
    // Of the sandbox, not of its one run: a policy that lowers leaves out what it does not allow, where a run is refused.
    env: flags.env && parseEnv(flags.env),
    limits,
    lifetime: lifetimeFor(limits.time, policy),
    user: oneOfFlag('--user', userNames, flags.user),
    root: oneOfFlag('--root', rootModes, flags.root),
    mounts: flags.mount?.map(parseMountFlag),
    commands: parseFlag('--command', () => commandsSchema, flags.command),
    network: parseNetworkFlags(flags, policy),
    seccomp: flags.seccomp === undefined ? undefined : profilePath(flags.seccomp),
    driver: parseFlag('--driver', () => specSchema.shape.driver, flags.driver),
    minTier: oneOfFlag('--min-tier', tiers, flags.minTier),
  }
  const request = {
    command: isPlainCommand(argv) ? [...argv] : (parseFlag('COMMAND', () => runRequestSchema.shape.command, argv) ?? []),
    cwd: parseFlag('--workdir', () => pathSchema, flags.workdir),
  }
  return { spec: stated(spec), request: stated(request) }
}

const createAndCloseMs = 60_000

/** The run is all there is to this sandbox, so it must not expire before its time is up. Undefined when it would not anyway. */
function lifetimeFor(statedTime: number | undefined, { defaults, ceiling }: Capping): number | undefined {
  const time = statedTime ?? defaults.limits?.time ?? defaultLimits.timeMs
  const needed = time + createAndCloseMs
  if (needed <= (defaults.lifetime ?? specDefaults.lifetime)) return undefined
  const most = ceiling.lifetime
  return most !== undefined && most >= time ? Math.min(needed, most) : needed
}

function profilePath(path: string): string {
  if (path === '') throw refuseFlag('--seccomp', 'must not be empty; expected the path of a profile')
  return resolve(path)
}

export function parseEnv(assignments: readonly string[]): Record<string, string> {
  const env: Record<string, string> = {}
  for (const assignment of assignments) {
    const at = assignment.indexOf('=')
    if (at === 0) throw refuseFlag(`--env ${assignment}`, 'has no name')
    if (at === -1) {
      throw new SandboxError('invalid', `--env ${assignment}: has no value, and nothing is taken from the host's environment by itself`, {
        hint: `glovebox run --env ${assignment}="$${assignment}" -- …`,
      })
    }
    // Not by assignment, which would lose a variable named __proto__ without a word; the engine refuses it by its name.
    Object.defineProperty(env, assignment.slice(0, at), { value: assignment.slice(at + 1), enumerable: true, configurable: true, writable: true })
  }
  parseFlag('--env', () => envSchema, env)
  return env
}

type Stated<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function stated<T extends object>(values: T): Stated<T> & { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never
}
