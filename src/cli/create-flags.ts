import { expiryActs } from '../contract/lifetimes.js'
import type { Policy } from '../contract/policy.js'
import { type SpecInput, specSchema } from '../contract/spec.js'
import { oneOfFlag, parseFlag, refuseFlag } from './flag-values.js'
import { parseRunFlags, type RunFlags } from './run-flags.js'

/** Those of `run` that are of a sandbox, and what only one that lasts can have. */
export interface CreateFlags extends Omit<RunFlags, 'upload' | 'download' | 'receipt' | 'here' | 'netLog' | 'learnNetwork'> {
  readonly agent?: string
  readonly metadata?: readonly string[]
  readonly lifetime?: string
  readonly idle?: string
  readonly onExpiry?: string
  readonly from?: string
}

/** Five minutes are enough for a program, and too few for a person. */
const usualLifetimeMs = 3_600_000

export function parseCreateFlags(flags: CreateFlags, policy: Pick<Policy, 'defaults' | 'ceiling'>): SpecInput {
  const { spec, request } = parseRunFlags(['create'], flags, policy)
  // A run's own needs are none of a sandbox that outlives it.
  const { lifetime: _ofOneRun, ...rest } = spec
  const lifetime = parseFlag('--lifetime', () => specSchema.shape.lifetime, flags.lifetime) ?? usualLifetime(policy)
  const own = {
    agent: parseFlag('--agent', () => specSchema.shape.agent, flags.agent),
    metadata: flags.metadata && parseMetadata(flags.metadata),
    lifetime,
    idle: parseFlag('--idle', () => specSchema.shape.idle, flags.idle),
    onExpiry: oneOfFlag('--on-expiry', expiryActs, flags.onExpiry),
    from: parseFlag('--from', () => specSchema.shape.from, flags.from),
    cwd: request.cwd,
  }
  return { ...rest, ...(Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined)) as Partial<SpecInput>) }
}

/** As a policy says, or within what it allows. */
function usualLifetime({ defaults, ceiling }: Pick<Policy, 'defaults' | 'ceiling'>): number | undefined {
  return defaults.lifetime === undefined ? Math.min(usualLifetimeMs, ceiling.lifetime ?? usualLifetimeMs) : undefined
}

/** KEY=VALUE, each key once. */
export function parseMetadata(pairs: readonly string[]): Record<string, string> {
  const metadata: Record<string, string> = {}
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at < 1) throw refuseFlag(`--metadata ${pair.slice(0, 80)}`, 'expected KEY=VALUE')
    const key = pair.slice(0, at)
    if (Object.hasOwn(metadata, key)) throw refuseFlag('--metadata', `'${key.slice(0, 80)}' is given twice`)
    Object.defineProperty(metadata, key, { value: pair.slice(at + 1), enumerable: true })
  }
  parseFlag('--metadata', () => specSchema.shape.metadata, metadata)
  return metadata
}
