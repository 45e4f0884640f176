import type * as z from 'zod'
import { defaultLimits, type LimitName, limitNames } from '../contract/limit-words.js'
import type { Ceiling, Origins, Policy, PolicyDefaults } from '../contract/policy.js'
import { type SpecInput, specSchema } from '../contract/spec.js'
import { stated } from './ceiling.js'
import { plainSpec } from './plain-spec.js'
import { parseObject } from './refusal.js'
import { fileSizeFor, inodesFor } from './spec.js'
import type { Excess, Wish } from './wish.js'

type ParsedSpec = z.output<typeof specSchema>

/** A spec with what its policy says where it says nothing. */
export interface Filled {
  readonly parsed: ParsedSpec
  readonly wish: Wish
  /** Who asked for what stands in a field: the spec, the defaults of a policy, or nobody. */
  readonly originOf: (field: string) => Origin
}

type Origin = 'spec' | 'policy' | 'nobody'

/** Throws SandboxError('invalid') naming the field of a spec that is wrong in itself. */
export function fillSpec(input: unknown, { defaults, ceiling }: Pick<Policy, 'defaults' | 'ceiling'>): Filled {
  const parsed = plainSpec(input) ?? parseObject(specSchema, input, { what: 'spec', objects: objectsIn(input) })
  const asked = stated(input as SpecInput)
  const limits = stated(parsed.limits)
  const given = stated(defaults)
  const onlyOne = onlyChoices(ceiling)
  return {
    parsed,
    wish: {
      limits: fillLimits({ ...given.limits, ...limits }, ceiling),
      lifetime: asked.lifetime === undefined ? (given.lifetime ?? parsed.lifetime) : parsed.lifetime,
      minTier: asked.minTier ?? given.minTier ?? parsed.minTier,
      user: asked.user ?? given.user ?? onlyOne.user ?? parsed.user,
      root: asked.root ?? given.root ?? onlyOne.root ?? parsed.root,
      template: asked.template ?? given.template ?? onlyOne.template ?? parsed.template,
      driver: parsed.driver,
      mounts: parsed.mounts,
      commands: parsed.commands ?? given.commands,
      env: { ...given.env, ...parsed.env },
      network: asked.network === undefined ? (given.network ?? parsed.network) : parsed.network,
      ownProfile: parsed.seccomp !== undefined,
    },
    originOf: originIn({ asked: { ...asked, limits }, given }),
  }
}

/** The fields that must be plain objects where they are objects at all. */
function objectsIn(input: unknown): readonly string[] {
  const network: unknown = typeof input === 'object' && input !== null && 'network' in input ? input.network : undefined
  return ['limits', 'env', 'metadata', ...(typeof network === 'object' ? ['network'] : [])]
}

/** Where a list leaves one choice, a spec that says nothing gets it. */
function onlyChoices({ users, roots, templates }: Ceiling) {
  const only = <Name>(names: readonly Name[] | undefined): Name | undefined => (names?.length === 1 ? names[0] : undefined)
  return { user: only(users), root: only(roots), template: only(templates) }
}

/** With our own defaults, of which two follow the disk that there will be. */
function fillLimits(limits: Wish['limits'], ceiling: Ceiling): Wish['limits'] {
  const disk = Math.min(limits.disk ?? defaultLimits.diskBytes, ceiling.limits?.disk ?? Number.POSITIVE_INFINITY)
  return {
    memory: defaultLimits.memoryBytes,
    cpus: defaultLimits.cpus,
    time: defaultLimits.timeMs,
    disk: defaultLimits.diskBytes,
    inodes: inodesFor(disk),
    fileSize: fileSizeFor(disk),
    openFiles: defaultLimits.openFiles,
    processes: defaultLimits.processes,
    output: defaultLimits.outputBytes,
    ...limits,
  }
}

interface Sources {
  readonly asked: Omit<SpecInput, 'limits'> & { readonly limits: Wish['limits'] }
  readonly given: PolicyDefaults
}

function originIn({ asked, given }: Sources): Filled['originOf'] {
  const has = (source: object | undefined, key: string): boolean => source !== undefined && Object.hasOwn(source, key)
  const origin = (a: object | undefined, b: object | undefined, key: string): Origin => (has(a, key) ? 'spec' : has(b, key) ? 'policy' : 'nobody')
  return (field) => {
    if (field.startsWith('mounts[')) return 'spec'
    const [outer, name] = splitField(field)
    if (name === undefined) return origin(asked, given, field)
    if (outer === 'network') return networkOrigin({ asked, given }, name)
    return outer === 'limits' ? origin(asked.limits, stated(given.limits ?? {}), name) : origin(asked.env, given.env, name)
  }
}

/** A spec that says something of the network has nothing of a policy's default. */
function networkOrigin({ asked, given }: Sources, name: string): Origin {
  const [source, origin] = asked.network === undefined ? ([given.network, 'policy'] as const) : ([asked.network, 'spec'] as const)
  const key = name.replace(/\[.*$/, '')
  const isSaid = typeof source === 'object' && Object.hasOwn(source, key) && source[key as keyof typeof source] !== undefined
  return isSaid ? origin : 'nobody'
}

/** 'env.A.B' → 'env' and 'A.B'. */
function splitField(field: string): readonly [string, string | undefined] {
  const at = field.indexOf('.')
  return at === -1 ? [field, undefined] : [field.slice(0, at), field.slice(at + 1)]
}

/** The field of an excess as it stands in the spec; what is shown of a variable's name may be shortened. */
export function fieldOf({ field, asked }: Excess): string {
  return field.startsWith('env.') && typeof asked === 'string' ? `env.${asked}` : field
}

/** The limits that are to stand in a spec: what somebody asked for, and what is capped. */
export function limitsToState({ originOf }: Filled, { held, ceiling }: { readonly held: Wish; readonly ceiling: Ceiling }) {
  const names = Object.keys(held.limits) as LimitName[]
  const isCapped = (name: LimitName): boolean => ceiling.limits?.[name] !== undefined
  const kept = names.filter((name) => isCapped(name) || originOf(`limits.${name}`) !== 'nobody')
  return {
    limits: Object.fromEntries(kept.map((name) => [name, held.limits[name]])) as Wish['limits'],
    /** Those that a policy only suggests. */
    assumed: kept.filter((name) => !isCapped(name) && originOf(`limits.${name}`) === 'policy'),
  }
}

interface Outcome {
  readonly held: Wish
  readonly ceiling: Ceiling
}

/** What nobody asked for is a policy's all the same where a cap demands it, or makes it another than our default. */
export function originsOf({ parsed, originOf }: Filled, { held, ceiling }: Outcome): Origins {
  const fields = ['lifetime', 'minTier', 'user', 'root', 'template', 'mounts', 'commands', 'network', 'env', 'seccomp'] as const
  const isChanged = (field: (typeof fields)[number]): boolean => field !== 'seccomp' && JSON.stringify(held[field]) !== JSON.stringify(parsed[field])
  const limits = limitNames.map((name) => [`limits.${name}`, ceiling.limits?.[name] !== undefined] as const)
  return Object.fromEntries(
    [...limits, ...fields.map((field) => [field, isChanged(field)] as const)].flatMap(([field, isPolicys]) => {
      const origin = originOf(field)
      if (origin !== 'nobody') return [[field, origin]]
      return isPolicys ? [[field, 'policy']] : []
    }),
  )
}
