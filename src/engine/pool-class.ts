import type { Language } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import type { Fresh } from '../contract/pools.js'
import type { Spec } from '../contract/spec.js'
import type { PlannedSandbox } from '../policy/apply.js'
import { hashOf } from '../receipt/index.js'

/** Why such a sandbox is never made before somebody asks for it; undefined when it may be. */
export function unpooledBecause({ mounts, from, name, seccomp, network }: Pick<Spec, 'mounts' | 'from' | 'name' | 'seccomp' | 'network'>): string | undefined {
  if (mounts.length > 0) return 'mounts: what they lead to is looked at when a sandbox is created'
  if (from !== undefined) return 'from: a snapshot is brought in when a sandbox is created'
  if (name !== undefined) return 'name: belongs to one sandbox'
  if (seccomp !== undefined) return 'seccomp: a profile is read when a sandbox is created'
  if (network !== false && network.credentials !== undefined && network.credentials.length > 0) return 'network.credentials: belong to one sandbox'
  return undefined
}

/** Throws SandboxError('invalid') naming the field for what is not made ahead. */
export function checkPooled(spec: Spec): void {
  const why = unpooledBecause(spec)
  if (why !== undefined) throw new SandboxError('invalid', `${why}, so a pool cannot keep such sandboxes ready`)
}

export interface ClassOf {
  readonly planned: PlannedSandbox
  readonly fresh: Fresh
  /** Whose it is: what is made for one is never another's. */
  readonly tenant: string
  /** Of the interpreter that waits in it; undefined: none does. */
  readonly language?: Language | undefined
}

/**
 * The same for all that may get the same cell: everything that a cell and its first program are made of, who stated its limits, and what holds them. Who a sandbox is for and how
 * long it lives are told when it is handed out, and its variables and its folder when a program is started; an interpreter that waits was started with them.
 */
export function classKey({ planned, fresh, tenant, language }: ClassOf): string {
  const { spec, origins, policy } = planned
  const { template, limits, root, user, commands, network, driver, minTier } = spec
  const stated = Object.fromEntries(Object.entries(origins).filter(([field]) => field.startsWith('limits.')))
  const policies = policy.layers.map(({ name, defaults, ceiling, onExceed }) => ({ name, defaults, ceiling, onExceed }))
  const interpreter = language === undefined ? null : { language, env: spec.env, cwd: spec.cwd ?? null }
  return hashOf({
    tenant,
    interpreter,
    fresh,
    template,
    limits,
    root,
    user,
    commands: commands ?? null,
    network,
    driver: driver ?? null,
    minTier,
    stated,
    policies,
  })
}
