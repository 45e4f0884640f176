import type { LimitName } from '../contract/limits.js'
import type { Ceiling, Policy, PolicyInput } from '../contract/policy.js'
import { stated } from './ceiling.js'
import { fillSpec } from './fill.js'
import { valueInFile } from './policy-words.js'
import { holdWish, type Wish } from './wish.js'

/** A policy as the document that says all of it by itself: what a spec without a word gets, and what none may exceed. */
export function effectivePolicy(policy: Policy): PolicyInput {
  const { wish, originOf } = fillSpec({}, policy)
  const { held, excesses } = holdWish(wish, policy.ceiling)
  // Where a list allows nothing, there is no default either.
  const impossible = new Set(excesses.filter(({ given }) => given === undefined).map(({ field }) => field))
  // These two follow the disk of each spec, unless somebody says more.
  const isOpen = (name: LimitName): boolean => originOf(`limits.${name}`) === 'nobody' && policy.ceiling.limits?.[name] === undefined
  const said = (limits: Wish['limits']): Wish['limits'] =>
    Object.fromEntries(Object.entries(limits).filter(([name]) => !['inodes', 'fileSize'].includes(name) || !isOpen(name as LimitName)))
  const { limits, lifetime, template, user, root, minTier, env, commands, network } = held
  const defaults = Object.entries({ template, user, root, minTier, commands }).filter(([name, value]) => value !== undefined && !impossible.has(name))
  const lowersOnly = policy.layers.length > 0 && policy.layers.every(({ onExceed }) => onExceed === 'clamp')
  const document: PolicyInput = {
    name:
      policy.layers
        .map(({ name }) => name)
        .join(' with ')
        .slice(0, 200) || undefined,
    defaults: stated({
      limits: limitsInFile(said(limits)),
      lifetime: valueInFile('lifetime', lifetime),
      ...Object.fromEntries(defaults),
      env: Object.keys(env).length > 0 ? env : undefined,
      network: network === false ? undefined : network,
      seccomp: policy.defaults.seccomp,
    }),
    ceiling: ceilingInFile(policy.ceiling),
    onExceed: lowersOnly ? 'clamp' : 'refuse',
  }
  return stated(document)
}

function limitsInFile(limits: Wish['limits']): Record<string, string | number> {
  return Object.fromEntries(Object.entries(limits).flatMap(([name, value]) => (value === undefined ? [] : [[name, valueInFile(`limits.${name}`, value)]])))
}

function ceilingInFile(ceiling: Ceiling): object {
  const { limits, lifetime, ...rest } = ceiling
  return { ...(limits && { limits: limitsInFile(limits) }), ...(lifetime !== undefined && { lifetime: valueInFile('lifetime', lifetime) }), ...rest }
}
