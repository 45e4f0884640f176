import type { LimitName } from '../contract/limits.js'
import type { Ceiling } from '../contract/policy.js'
import type { Network } from '../contract/network.js'
import type { Json } from '../contract/posture.js'
import type { Mount } from '../contract/spec.js'
import { mountModes, type RootMode, rootModes, type Tier, tiers, type UserName, userNames } from '../contract/spec-words.js'
import { isMeantBy, isOpenChoice } from './driver-names.js'
import { isWithin } from './host-path.js'
import { holdNetwork } from './network-ceiling.js'
import { valueInWords } from './policy-words.js'
import { printable } from './refusal.js'

/** All of a spec that a ceiling can cap. A limit that is not there is unlimited. */
export interface Wish {
  readonly limits: { readonly [Name in LimitName]?: number | undefined }
  readonly lifetime: number
  readonly minTier: Tier
  readonly user: UserName
  readonly root: RootMode
  readonly template: string
  /** Undefined: whichever is best. */
  readonly driver: string | undefined
  readonly mounts: readonly Mount[]
  /** Undefined: all. */
  readonly commands: readonly string[] | undefined
  readonly env: Readonly<Record<string, string>>
  readonly network: Network
  /** Whether the spec brings a profile of its own. */
  readonly ownProfile: boolean
}

/** One thing that is above its cap. */
export interface Excess {
  readonly field: string
  readonly asked: Json
  /** What it is lowered to; undefined when nothing lower would do. */
  readonly given: Json | undefined
  /** What is wrong with it, of a policy with this name. */
  readonly words: (policy: string) => string
}

interface Held<Value> {
  readonly value: Value
  readonly excesses: readonly Excess[]
}

/** A wish brought down to a ceiling, and all that was above it. A wish with an excess that could not be lowered is not to be used. */
export function holdWish(wish: Wish, ceiling: Ceiling): { readonly held: Wish; readonly excesses: readonly Excess[] } {
  const limits = holdLimits(wish.limits, ceiling.limits)
  const lifetime = atMost('lifetime', wish.lifetime, ceiling.lifetime)
  const minTier = atLeast(wish.minTier, ceiling.minTier)
  const user = oneOf('user', wish.user, { allowed: ceiling.users, order: userNames })
  const root = oneOf('root', wish.root, { allowed: ceiling.roots, order: rootModes })
  const template = oneOf('template', wish.template, { allowed: ceiling.templates, order: [] })
  const driver = holdDriver(wish.driver, ceiling.drivers)
  const mounts = holdMounts(wish.mounts, ceiling.mounts)
  const commands = holdCommands(wish.commands, ceiling.commands)
  const env = holdEnv(wish.env, ceiling.env)
  const network = holdNetwork(wish.network, ceiling.network)
  const profile = wish.ownProfile && ceiling.seccomp === 'default-only' ? [profileExcess] : []
  const all = [limits, lifetime, minTier, user, root, template, driver, mounts, commands, env, network]
  return {
    held: {
      limits: limits.value,
      lifetime: lifetime.value ?? wish.lifetime,
      minTier: minTier.value,
      user: user.value,
      root: root.value,
      template: template.value,
      driver: driver.value,
      mounts: mounts.value,
      commands: commands.value,
      env: env.value,
      network: network.value,
      ownProfile: wish.ownProfile,
    },
    excesses: [...all.flatMap(({ excesses }) => excesses), ...profile],
  }
}

const profileExcess: Excess = {
  field: 'seccomp',
  asked: 'custom',
  // The profile that is there instead may allow what the spec's own would not.
  given: undefined,
  words: (policy) => `policy '${policy}' allows no profile of a spec's own`,
}

export function holdLimits(limits: Wish['limits'], caps: Ceiling['limits'] = {}): Held<Wish['limits']> {
  const held = (Object.keys(caps) as LimitName[]).map((name) => [name, atMost(`limits.${name}`, limits[name], caps[name])] as const)
  const values = held.flatMap(([name, { value }]) => (value === undefined ? [] : [[name, value] as const]))
  return { value: { ...limits, ...Object.fromEntries(values) }, excesses: held.flatMap(([, { excesses }]) => excesses) }
}

/** Undefined is unlimited, which is above every cap. */
function atMost(field: string, asked: number | undefined, cap: number | undefined): Held<number | undefined> {
  if (cap === undefined || (asked !== undefined && asked <= cap)) return { value: asked, excesses: [] }
  const words = (policy: string): string =>
    `${asked === undefined ? 'no limit' : valueInWords(field, asked)} is above the ${valueInWords(field, cap, Math.floor)} that policy '${policy}' allows`
  return { value: cap, excesses: [{ field, asked: asked ?? null, given: cap, words }] }
}

function atLeast(asked: Tier, cap: Tier | undefined): Held<Tier> {
  if (cap === undefined || tiers.indexOf(asked) >= tiers.indexOf(cap)) return { value: asked, excesses: [] }
  const words = (policy: string): string => `'${asked}' is below the '${cap}' that policy '${policy}' demands`
  return { value: cap, excesses: [{ field: 'minTier', asked, given: cap, words }] }
}

interface Choice<Name extends string> {
  readonly allowed: readonly Name[] | undefined
  /** From the least to the most; a name that is not in it is neither. */
  readonly order: readonly Name[]
}

function oneOf<Name extends string>(field: string, asked: Name, { allowed, order }: Choice<Name>): Held<Name> {
  if (allowed === undefined || allowed.includes(asked)) return { value: asked, excesses: [] }
  const lower = order.slice(0, Math.max(0, order.indexOf(asked))).findLast((name) => allowed.includes(name))
  return { value: lower ?? asked, excesses: [{ field, asked, given: lower, words: notAmong(asked, allowed) }] }
}

function notAmong(asked: string, allowed: readonly string[]): Excess['words'] {
  return (policy) => `'${printable(asked)}' is not among what policy '${policy}' allows (${listed(allowed)})`
}

const mostListed = 8

function listed(names: readonly string[]): string {
  if (names.length === 0) return 'none'
  const more = names.length > mostListed ? ` and ${names.length - mostListed} more` : ''
  return `${names.slice(0, mostListed).map(printable).join(', ')}${more}`
}

/** One that is not named is chosen among the allowed ones, when they are known. */
function holdDriver(asked: string | undefined, allowed: readonly string[] | undefined): Held<string | undefined> {
  // Of a family whoever is allowed is left.
  const isAllowed = !isOpenChoice(asked) && allowed?.some((each) => isMeantBy(each, asked) || isMeantBy(asked, each))
  return isOpenChoice(asked) || isAllowed ? { value: asked, excesses: [] } : oneOf('driver', asked, { allowed, order: [] })
}

export function holdMounts(mounts: readonly Mount[], caps: Ceiling['mounts'] = {}): Held<readonly Mount[]> {
  const held = mounts.map((mount, index) => holdMount(mount, { index, caps }))
  return { value: held.flatMap(({ value }) => (value === undefined ? [] : [value])), excesses: held.flatMap(({ excesses }) => excesses) }
}

interface MountCaps {
  readonly index: number
  readonly caps: NonNullable<Ceiling['mounts']>
}

/** Undefined when it is not to be mounted at all. */
function holdMount(mount: Mount, { index, caps: { sources, modes } }: MountCaps): Held<Mount | undefined> {
  const field = `mounts[${index}]`
  if (sources !== undefined && !sources.some((folder) => isWithin(mount.source, folder))) {
    const words = (policy: string): string => `'${printable(mount.source)}' is in no folder that policy '${policy}' allows (${listed(sources)})`
    return { value: undefined, excesses: [{ field, asked: { ...mount }, given: null, words }] }
  }
  const { value: mode, excesses } = oneOf(`${field}.mode`, mount.mode, { allowed: modes, order: mountModes })
  const isLost = excesses.some(({ given }) => given === undefined)
  return isLost ? { value: undefined, excesses: excesses.map((excess) => ({ ...excess, given: null })) } : { value: { ...mount, mode }, excesses }
}

function holdCommands(asked: readonly string[] | undefined, allowed: readonly string[] | undefined): Held<readonly string[] | undefined> {
  if (allowed === undefined) return { value: asked, excesses: [] }
  if (asked === undefined) return { value: allowed, excesses: [{ field: 'commands', asked: null, given: allowed, words: notAmong('all programs', allowed) }] }
  const value = asked.filter((name) => allowed.includes(name))
  const outside = asked.find((name) => !allowed.includes(name))
  return { value, excesses: outside === undefined ? [] : [{ field: 'commands', asked, given: value, words: notAmong(outside, allowed) }] }
}

export function holdEnv(env: Wish['env'], allowed: readonly string[] | undefined): Held<Wish['env']> {
  if (allowed === undefined) return { value: env, excesses: [] }
  const outside = Object.keys(env).filter((name) => !allowed.includes(name))
  const words = (policy: string): string => `is not among the variables that policy '${policy}' allows (${listed(allowed)})`
  return {
    value: Object.fromEntries(Object.entries(env).filter(([name]) => allowed.includes(name))),
    // Values may be secrets: what was asked is told by its name.
    excesses: outside.map((name) => ({ field: `env.${printable(name)}`, asked: name, given: null, words })),
  }
}
