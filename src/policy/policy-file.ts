import * as z from 'zod'
import { SandboxError } from '../contract/errors.js'
import { parseJson } from '../contract/json-text.js'
import { type Policy, type PolicyDefaults, type PolicyInput, policySchema, presetNames } from '../contract/policy.js'
import { intersectCeilings, stated } from './ceiling.js'
import { fillSpec } from './fill.js'
import { areRangesWithin, checkNetworkCeiling } from './network-ceiling.js'
import { networkRules } from './network-rules.js'
import { presets } from './presets.js'
import { parseObject, printable } from './refusal.js'
import { holdWish } from './wish.js'

type Document = z.output<typeof policySchema>

/** Caps nothing and says nothing. */
export const noPolicy: Policy = { defaults: {}, ceiling: {}, layers: [] }

const objects = ['defaults', 'ceiling']

/**
 * A policy, or the name of a preset. Throws SandboxError('invalid') naming the field; one whose own defaults are above its ceiling contradicts itself
 * and is refused too. `name` is what messages call it when it has no name of its own.
 */
export function parsePolicy(value: unknown, name = 'policy'): Policy {
  if (typeof value === 'string') return shownBy(extendPreset({ extends: presetNamed(value) }, value), `glovebox policy show ${value}`)
  const document = parseObject(policySchema, value, { what: 'policy', objects })
  return extendPreset(document, document.name ?? name)
}

/** The same, with the command that prints it. */
export function shownBy(policy: Policy, command: string): Policy {
  return { ...policy, layers: policy.layers.map((layer) => ({ ...layer, shownBy: command })) }
}

/** The text of a policy file as the document in it, named by its path unless it has a name of its own. Whatever is wrong is said of the path. */
export function parsePolicyText(text: string, path: string): PolicyInput {
  const value = parseJson(text, path)
  try {
    parsePolicy(value, path)
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    throw new SandboxError(error.code, `${path}: ${error.message}`, { hint: 'glovebox policy show strict', cause: error })
  }
  return { name: labelOf(path), ...(value as PolicyInput) }
}

const mostNameCharacters = 200

/** As much of a path as a name may have: its end, and nothing that drives a terminal. */
function labelOf(path: string): string {
  return path.replace(/\p{Cc}/gu, '\uFFFD').slice(-mostNameCharacters)
}

/** The policy that a spec brings itself; undefined when it brings none. */
export function parseSpecPolicy(spec: unknown): Policy | undefined {
  const value: unknown = typeof spec === 'object' && spec !== null && Object.hasOwn(spec, 'policy') ? (spec as { policy: unknown }).policy : undefined
  if (value === undefined) return undefined
  if (typeof value === 'string') return parsePolicy(value)
  // As a field of the spec, so that messages name it in full: policy.ceiling.users.
  const { policy } = parseObject(z.strictObject({ policy: policySchema }), { policy: value }, { what: 'spec', objects: ['policy'] })
  return extendPreset(policy, policy.name ?? 'spec')
}

function presetNamed(text: string) {
  const found = presetNames.find((name) => name === text)
  if (found === undefined) throw new SandboxError('invalid', `policy: there is no preset '${printable(text)}'; there are ${presetNames.join(', ')}`)
  return found
}

/** The ceilings of both hold; what the document says of defaults comes before what the preset says. */
function extendPreset(document: Document, name: string): Policy {
  checkNetwork(document)
  const preset = policySchema.parse(document.extends === undefined ? {} : presets[document.extends])
  const ceiling = intersectCeilings(preset.ceiling ?? {}, document.ceiling ?? {})
  const own = stated(document.defaults ?? {})
  refuseContradictions({ defaults: own, ceiling, layers: [] }, name)
  const defaults = lowerDefaults(mergeDefaults(stated(preset.defaults ?? {}), own), ceiling)
  return { defaults, ceiling, layers: [{ name, defaults, ceiling, onExceed: document.onExceed ?? preset.onExceed ?? 'refuse' }] }
}

/** Hosts and addresses are texts that the schema does not read. Throws SandboxError('invalid') naming the field. */
function checkNetwork({ defaults, ceiling }: Document): void {
  checkNetworkCeiling(ceiling?.network)
  if (defaults?.network === undefined || defaults.network === false) return
  try {
    networkRules(defaults.network)
  } catch (error) {
    throw error instanceof SandboxError ? new SandboxError(error.code, `defaults.${error.message}`, { cause: error }) : error
  }
}

function refuseContradictions(policy: Policy, name: string): void {
  const { wish, originOf } = fillSpec({}, policy)
  const problems = holdWish(wish, policy.ceiling).excesses.filter(({ field }) => originOf(field) === 'policy')
  if (problems.length === 0) return
  throw new SandboxError('invalid', problems.map(({ field, words }) => `defaults.${field}: ${words(name)}`).join('; '))
}

/** What a preset suggests, within the ceiling of the policy that extends it. */
function lowerDefaults(defaults: PolicyDefaults, ceiling: Policy['ceiling']): PolicyDefaults {
  const { wish } = fillSpec({}, { defaults, ceiling })
  const { held } = holdWish(wish, ceiling)
  const keep = <Value extends object>(asked: Value, lowered: object): Value =>
    Object.fromEntries(Object.entries(lowered).filter(([key]) => Object.hasOwn(asked, key))) as Value
  const lowered = keep(defaults, { ...held, seccomp: defaults.seccomp })
  return defaults.limits === undefined ? lowered : { ...lowered, limits: keep(defaults.limits, held.limits) }
}

function mergeDefaults(below: PolicyDefaults, above: PolicyDefaults): PolicyDefaults {
  const limits = stated({ ...below.limits, ...stated(above.limits ?? {}) })
  const env = { ...below.env, ...above.env }
  return {
    ...below,
    ...above,
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(Object.keys(env).length > 0 && { env }),
  }
}

/**
 * Both hold: a spec is within the caps of both. Of the defaults those of the spec's own policy come first, being nearer to it, within what the operator
 * allows. Throws SandboxError('invalid') for a profile of its own where the operator allows none: no other could stand in for it.
 */
export function mergePolicies(operator: Policy, own: Policy): Policy {
  refuseProfile(operator, own.defaults.seccomp)
  refusePrivate(operator, own)
  return {
    defaults: mergeDefaults(operator.defaults, own.defaults),
    ceiling: intersectCeilings(operator.ceiling, own.ceiling),
    layers: [...operator.layers, ...own.layers],
  }
}

/** Of all that a ceiling says this alone allows more, so it is the operator's to say. */
function refusePrivate(operator: Policy, own: Policy): void {
  if (areRangesWithin(privateOf(own), privateOf(operator))) return
  throw new SandboxError('invalid', "policy.ceiling.network.private: only an operator's policy can name addresses that are not public", {
    hint: 'GLOVEBOX_POLICY=FILE glovebox run …',
  })
}

/** Addresses that are not public and that it names. */
export function privateOf({ ceiling }: Pick<Policy, 'ceiling'>): readonly string[] {
  return (ceiling.network !== false && ceiling.network?.private) || []
}

function refuseProfile({ ceiling, defaults, layers }: Policy, profile: PolicyDefaults['seccomp']): void {
  if (ceiling.seccomp !== 'default-only' || profile === undefined || JSON.stringify(profile) === JSON.stringify(defaults.seccomp)) return
  const whose = layers.filter((layer) => layer.ceiling.seccomp === 'default-only').map(({ name }) => name)
  throw new SandboxError('invalid', `policy.defaults.seccomp: policy '${whose.join("' with '")}' allows no profile of a spec's own`, {
    hint: 'glovebox policy show',
  })
}
