import { SandboxError } from '../contract/errors.js'
import type { Expectation, Json, Posture } from '../contract/posture.js'

/** Another program of its id lowered the limits of one that was to start. */
export class LoweredLimits extends SandboxError {
  constructor() {
    super('conflict', 'another program of the sandbox lowered the limits of the one that was to start')
  }
}

/** What is demanded, but for limits of a process that were found lower: its like may lower them at any time, and nobody can raise them. */
export function withLoweredLimits(expectations: readonly Expectation[], postures: readonly Posture[]): readonly Expectation[] {
  const found = postures.flatMap(({ observations }) => observations).find(({ control }) => control === 'rlimits')?.value
  return expectations.map((each) => (each.control === 'rlimits' && found !== undefined ? { ...each, value: lowerOf(each.value, found) } : each))
}

function lowerOf(demanded: Json, found: Json): Json {
  const [wanted, seen] = [rowsOf(demanded), rowsOf(found)]
  return Object.fromEntries(Object.entries(wanted).map(([name, pair]) => [name, isLower(pair, seen[name]) ? (seen[name] as Json) : pair]))
}

function rowsOf(value: Json): { readonly [name: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as { readonly [name: string]: Json }) : {}
}

function isLower(wanted: Json, seen: Json | undefined): boolean {
  if (!Array.isArray(wanted) || !Array.isArray(seen) || wanted.length !== seen.length) return false
  return wanted.every((most: Json, index) => typeof most === 'number' && typeof seen[index] === 'number' && seen[index] <= most)
}
