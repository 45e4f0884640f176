/**
 * How a policy meets a spec. What the spec leaves unstated comes from the policy's defaults, then from ours, and is lowered to the caps without a
 * word where nobody asked for it. What is stated above a cap is refused or lowered, as the policy says whose cap it is; whatever was lowered is
 * reported. A limit that is capped counts as stated from then on: it is enforced, or the sandbox is refused.
 */
import * as z from 'zod'
import { SandboxError } from '../contract/errors.js'
import { type LimitName, type LimitsInput, limitsSchema } from '../contract/limits.js'
import { type Network, type NetworkRules, networkSchema } from '../contract/network.js'
import type { Ceiling, Clamping, Origins, Policy } from '../contract/policy.js'
import type { Mount, Spec, SpecInput } from '../contract/spec.js'
import { stated } from './ceiling.js'
import { isMeantBy } from './driver-names.js'
import { type Filled, fieldOf, fillSpec, limitsToState, originsOf } from './fill.js'
import { holdNetwork } from './network-ceiling.js'
import { type NetworkWish, networkRules } from './network-rules.js'
import { mergePolicies, noPolicy, parseSpecPolicy, privateOf } from './policy-file.js'
import { PolicyRefusal } from './policy-refusal.js'
import { parseObject, parseWith } from './refusal.js'
import type { RunPlan } from './run.js'
import { parseSpec } from './spec.js'
import { type Excess, holdEnv, holdLimits, holdMounts, holdWish } from './wish.js'

export interface Applied {
  /** Completed and within every cap; without the policy, which has done its work. */
  readonly spec: SpecInput
  readonly clamped: readonly Clamping[]
  /** Limits that come from a policy's defaults and have no cap: like our own defaults, they are not demanded. */
  readonly assumed: readonly LimitName[]
  readonly origins: Origins
}

/** Throws SandboxError('invalid') naming the field, what was asked, the cap and the policy whose cap it is. */
export function applyPolicy(input: unknown, policy: Policy): Applied {
  const filled = fillSpec(input, policy)
  const { parsed, wish } = filled
  for (const layer of policy.layers) {
    const { excesses } = holdWish(wish, layer.ceiling)
    const refused = excesses.filter((excess) => excess.given === undefined || (layer.onExceed === 'refuse' && originOf(filled, excess) === 'spec'))
    if (refused.length > 0) throw refusal(refused, [layer])
  }
  const { held, excesses } = holdWish(wish, policy.ceiling)
  const stuck = excesses.filter(({ given }) => given === undefined)
  if (stuck.length > 0) throw refusal(stuck, policy.layers)

  const { limits, assumed } = limitsToState(filled, { held, ceiling: policy.ceiling })
  const { from, name, agent, metadata, cwd, idle, onExpiry, ring } = parsed
  const { lifetime, minTier, user, root, template, driver, mounts, commands, network, env } = held
  const seccomp = parsed.seccomp ?? policy.defaults.seccomp
  const own = { from, name, agent, metadata, cwd, idle, onExpiry, ring }
  const spec = { ...own, limits, lifetime, minTier, user, root, template, driver, mounts: [...mounts], commands, network, env, seccomp }
  const lowered = excesses.filter((excess) => originOf(filled, excess) !== 'nobody')
  const clamped = clampingsOf(lowered, { layers: policy.layers, excessesOf: (ceiling) => holdWish(wish, ceiling).excesses })
  return { spec: stated(spec) as SpecInput, clamped, assumed, origins: originsOf(filled, { held, ceiling: policy.ceiling }) }
}

function originOf(filled: Filled, excess: Excess) {
  return filled.originOf(fieldOf(excess))
}

function refusal(excesses: readonly Excess[], layers: Policy['layers']): PolicyRefusal {
  const policy = namesOf(layers)
  return new PolicyRefusal('invalid', excesses.map(({ field, words }) => `${field}: ${words(policy)}`).join('; '), layers)
}

function namesOf(layers: Policy['layers']): string {
  return layers.map(({ name }) => name).join("' with '")
}

interface Caps {
  readonly layers: Policy['layers']
  readonly excessesOf: (ceiling: Ceiling) => readonly Excess[]
}

/** Of several caps, the one that it was lowered to is named. */
function clampingsOf(excesses: readonly Excess[], { layers, excessesOf }: Caps): readonly Clamping[] {
  const caps = layers.flatMap(({ name, ceiling }) => excessesOf(ceiling).map((excess) => ({ name, excess })))
  return excesses.map(({ field, asked, given = null }) => {
    const own = caps.filter(({ excess }) => excess.field === field)
    const decisive = own.find(({ excess }) => JSON.stringify(excess.given) === JSON.stringify(given)) ?? own[0]
    return { field, asked, given, policy: decisive?.name ?? '' }
  })
}

/** A spec with its policy and the operator's applied. The policy is kept: limits, runs and mounts are held to it later. */
export interface PlannedSandbox {
  readonly spec: Spec
  readonly clamped: readonly Clamping[]
  readonly origins: Origins
  readonly policy: Policy
}

/** Throws SandboxError('invalid') naming the field. */
export function planSandbox(input: unknown, operator?: Policy): PlannedSandbox {
  const own = parseSpecPolicy(input)
  const policy = own === undefined ? (operator ?? noPolicy) : mergePolicies(operator ?? noPolicy, own)
  const { spec: completed, clamped, assumed, origins } = applyPolicy(input, policy)
  const spec = parseSpec(completed)
  const isDemanded = (name: LimitName): boolean => !assumed.includes(name)
  return { spec: { ...spec, limits: { ...spec.limits, stated: spec.limits.stated.filter(isDemanded) } }, clamped, origins, policy }
}

/** Limits that are to be changed while a sandbox lives, within every cap. Throws as `applyPolicy` does. */
export function checkLimits(input: unknown, policy: Policy): { readonly limits: LimitsInput; readonly clamped: readonly Clamping[] } {
  const asked = stated(parseObject(limitsSchema, input, { what: 'limits', objects: [] }))
  const names = Object.keys(asked) as LimitName[]
  const within = (ceiling: Ceiling) => holdLimits(asked, stated(Object.fromEntries(names.map((name) => [name, ceiling.limits?.[name]]))))
  for (const layer of policy.layers) {
    const { excesses } = within(layer.ceiling)
    if (layer.onExceed === 'refuse' && excesses.length > 0) throw refusal(excesses, [layer])
  }
  const { value, excesses } = within(policy.ceiling)
  return { limits: value, clamped: clampingsOf(excesses, { layers: policy.layers, excessesOf: (ceiling) => within(ceiling).excesses }) }
}

/** Another network for a sandbox that lives, within every cap. Throws as `applyPolicy` does. */
export function checkNetwork(input: unknown, policy: Policy): { readonly network: NetworkWish; readonly clamped: readonly Clamping[] } {
  const asked = parseWith(z.strictObject({ network: networkSchema }), { network: input }, 'network').network
  if (asked === false)
    throw new SandboxError('invalid', 'network: cannot be taken away: allow nothing instead', { hint: 'sandbox.network.update({ allow: [] })' })
  networkRules(asked)
  const isStated = ({ field }: Excess): boolean => Object.hasOwn(asked, field.replace(/^network\.|\[.*$/g, ''))
  for (const layer of policy.layers) {
    const excesses = holdNetwork(asked, layer.ceiling.network).excesses.filter(isStated)
    if (layer.onExceed === 'refuse' && excesses.length > 0) throw refusal(excesses, [layer])
  }
  const { value, excesses } = holdNetwork(asked, policy.ceiling.network)
  const clamped = clampingsOf(excesses.filter(isStated), { layers: policy.layers, excessesOf: (ceiling) => holdNetwork(asked, ceiling.network).excesses })
  // A sandbox that has a network was allowed one: no cap of its policy takes it away.
  return { network: value === false ? { allow: [] } : value, clamped }
}

/** All that decides about the connections of a sandbox; undefined when it has none. */
export function networkRulesOf(network: Network, policy: Policy): NetworkRules | undefined {
  return network === false ? undefined : networkRules(network, privateOf(policy))
}

/** A run may choose its user and its variables itself, so it is held to the caps too: refused, never lowered. */
export function checkRun({ user, env }: Pick<RunPlan, 'user' | 'env'>, policy: Policy): void {
  for (const layer of policy.layers) {
    const { name, ceiling } = layer
    const { excesses } = holdEnv(env, ceiling.env)
    if (excesses.length > 0) throw refusal(excesses, [layer])
    if (ceiling.users === undefined || ceiling.users.includes(user)) continue
    const allowed = ceiling.users.join(', ') || 'none'
    throw new PolicyRefusal('invalid', `user: '${user}' is not among what policy '${name}' allows (${allowed})`, [layer])
  }
}

/** Sources once their links are followed: one that led out of the folders that are allowed is refused. */
export function checkMounts(mounts: readonly Mount[], policy: Policy): void {
  for (const layer of policy.layers) {
    const { excesses } = holdMounts(mounts, layer.ceiling.mounts)
    if (excesses.length > 0) throw refusal(excesses, [layer])
  }
}

/** The drivers that a cell may be built by. Throws SandboxError('unsupported') when none is left. */
export function allowedDrivers<Known extends { readonly name: string }>(drivers: readonly Known[], { ceiling, layers }: Policy): readonly Known[] {
  const names = ceiling.drivers
  if (names === undefined || drivers.length === 0) return drivers
  const allowed = drivers.filter(({ name }) => names.some((each) => isMeantBy(each, name)))
  if (allowed.length > 0) return allowed
  const whose = layers.filter((layer) => layer.ceiling.drivers !== undefined)
  const found = `allows ${names.join(', ') || 'none'}; here are ${drivers.map(({ name }) => name).join(', ')}`
  throw new PolicyRefusal('unsupported', `driver: policy '${namesOf(whose)}' ${found}`, whose)
}

/** Of the variables that an image sets, those that every policy allows; where programs are looked for is no secret and no power. */
export function heldImageEnv(env: Readonly<Record<string, string>>, { layers }: Policy): Readonly<Record<string, string>> {
  const isAllowed = (name: string): boolean => name === 'PATH' || layers.every(({ ceiling }) => ceiling.env?.includes(name) ?? true)
  return Object.fromEntries(Object.entries(env).filter(([name]) => isAllowed(name)))
}
