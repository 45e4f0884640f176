import { type LimitName, limitNames } from '../contract/limit-words.js'
import type { Ceiling } from '../contract/policy.js'
import { type Tier, tiers } from '../contract/spec-words.js'
import { intersectNetworks } from './network-ceiling.js'
import { isWithin, normalPath } from './host-path.js'

/** What both allow, and no more. Lists come out sorted and without repetition, so that the order of the two does not show. */
export function intersectCeilings(a: Ceiling, b: Ceiling): Ceiling {
  return stated({
    limits: leastLimits(a.limits, b.limits),
    lifetime: least(a.lifetime, b.lifetime),
    minTier: strongest(a.minTier, b.minTier),
    users: inBoth(a.users, b.users),
    roots: inBoth(a.roots, b.roots),
    templates: inBoth(a.templates, b.templates),
    drivers: inBoth(a.drivers, b.drivers),
    mounts: narrowest(a.mounts, b.mounts),
    commands: inBoth(a.commands, b.commands),
    network: intersectNetworks(a.network, b.network),
    seccomp: a.seccomp === 'default-only' || b.seccomp === 'default-only' ? ('default-only' as const) : (a.seccomp ?? b.seccomp),
    env: inBoth(a.env, b.env),
  })
}

/** The same without what is undefined, which says nothing. */
export function stated<Values extends object>(values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Values
}

/** Undefined when nothing is in it. */
function orNothing<Values extends object>(values: Values): Values | undefined {
  const known = stated(values)
  return Object.keys(known).length === 0 ? undefined : known
}

function least(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b)
}

function leastLimits(a: Ceiling['limits'] = {}, b: Ceiling['limits'] = {}): Ceiling['limits'] {
  const names: readonly LimitName[] = limitNames
  return orNothing(Object.fromEntries(names.map((name) => [name, least(a[name], b[name])])))
}

function strongest(a: Tier | undefined, b: Tier | undefined): Tier | undefined {
  return a === undefined || b === undefined ? (a ?? b) : tiers[Math.max(tiers.indexOf(a), tiers.indexOf(b))]
}

function inBoth<Name extends string>(a: readonly Name[] | undefined, b: readonly Name[] | undefined): Name[] | undefined {
  if (a === undefined || b === undefined) {
    const only = a ?? b
    return only && [...new Set(only)].sort()
  }
  return [...new Set(a)].filter((name) => b.includes(name)).sort()
}

function narrowest(a: Ceiling['mounts'] = {}, b: Ceiling['mounts'] = {}): Ceiling['mounts'] {
  return orNothing({ sources: foldersInBoth(a.sources, b.sources), modes: inBoth(a.modes, b.modes) })
}

/** Of two folders the one that is in the other. */
function foldersInBoth(a: readonly string[] | undefined, b: readonly string[] | undefined): string[] | undefined {
  if (a === undefined || b === undefined) return (a ?? b) && outermost((a ?? b ?? []).map(normalPath))
  return outermost(a.flatMap((x) => b.flatMap((y) => (isWithin(x, y) ? [normalPath(x)] : isWithin(y, x) ? [normalPath(y)] : []))))
}

/** Without folders that are in another one. */
function outermost(folders: readonly string[]): string[] {
  const different = [...new Set(folders)]
  return different.filter((folder) => !different.some((other) => other !== folder && isWithin(folder, other))).sort()
}
