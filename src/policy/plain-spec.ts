import type * as z from 'zod'
import { plainObjectRefusal } from '../contract/plain-object.js'
import type { specSchema } from '../contract/spec.js'
import { specDefaults } from '../contract/spec-words.js'

type ParsedSpec = z.output<typeof specSchema>

const emptyByDefault = ['metadata', 'limits', 'env']
const unstatedByDefault = ['from', 'name', 'agent', 'idle', 'cwd', 'commands', 'seccomp', 'driver', 'policy']

/**
 * What the schema makes of a spec that asks for nothing but what it gets anyway, without the schema: making it takes longer than all else that is decided about such a
 * sandbox. Undefined for every other, right or wrong, about which the schema decides.
 */
export function plainSpec(input: unknown): ParsedSpec | undefined {
  if (plainObjectRefusal(input, 'spec') || !Reflect.ownKeys(input as object).every((key) => isPlain(key, (input as Record<PropertyKey, unknown>)[key])))
    return undefined
  const { template, lifetime, onExpiry, user, root, network, ring, minTier } = specDefaults
  return { template, metadata: {}, limits: {}, lifetime, onExpiry, env: {}, user, root, mounts: [], network, ring, minTier }
}

function isPlain(key: PropertyKey, value: unknown): boolean {
  if (typeof key !== 'string') return false
  if (Object.hasOwn(specDefaults, key)) return value === undefined || value === specDefaults[key as keyof typeof specDefaults]
  if (key === 'mounts') return value === undefined || (Array.isArray(value) && value.length === 0)
  if (emptyByDefault.includes(key)) return value === undefined || (!plainObjectRefusal(value, key) && Reflect.ownKeys(value as object).length === 0)
  return unstatedByDefault.includes(key) && value === undefined
}
