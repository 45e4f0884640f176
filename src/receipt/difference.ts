import type { Json } from '../contract/posture.js'
import { canonicalJson } from '../contract/canonical-json.js'

const mostRows = 3
const mostCharacters = 400

type JsonObject = { readonly [key: string]: Json }

/** Whether a value is what was demanded: of an object the names that the demand has, everything else whole. */
export function isDemanded(expected: Json, found: Json): boolean {
  if (!isObject(expected) || !isObject(found)) return isSame(expected, found)
  return Object.entries(expected).every(([name, value]) => Object.hasOwn(found, name) && isDemanded(value, found[name] as Json))
}

/** What differs, in one line: of objects the names, of lists the rows. */
export function describeDifference(expected: Json, found: Json): string {
  const text = differences(expected, found).join('; ')
  return text.length <= mostCharacters ? text : `${text.slice(0, mostCharacters - 1)}…`
}

function differences(expected: Json, found: Json): string[] {
  if (isObject(expected) && isObject(found)) {
    return Object.entries(expected).flatMap(([name, value]) => {
      if (!Object.hasOwn(found, name)) return [`${name} is missing`]
      return isDemanded(value, found[name] as Json) ? [] : differences(value, found[name] as Json).map((text) => `${name} ${text}`)
    })
  }
  if (Array.isArray(expected) && Array.isArray(found)) return rowDifferences(expected as readonly Json[], found as readonly Json[])
  return [`is ${inShort(found)} instead of ${inShort(expected)}`]
}

function rowDifferences(expected: readonly Json[], found: readonly Json[]): string[] {
  const lacking = without(expected, found)
  const strange = without(found, expected)
  if (lacking.length === 0 && strange.length === 0) return ['is in another order']
  const pairs = lacking.flatMap((row) => strange.filter((other) => isAboutSame(row, other)).map((other) => [row, other] as const))
  const changed = pairs.map(([row, other]) => `${nameOf(row) ?? ''}: ${fieldDifferences(row, other)}`)
  const lost = lacking.filter((row) => !pairs.some(([one]) => one === row)).map((row) => `lacks ${inShort(row)}`)
  const added = strange.filter((row) => !pairs.some(([, one]) => one === row)).map((row) => `has ${inShort(row)} besides`)
  const all = [...changed, ...added, ...lost]
  return all.length <= mostRows ? all : [...all.slice(0, mostRows), `and ${all.length - mostRows} more`]
}

/** The rows of one that the other has not, each as often as it is missing. */
function without(rows: readonly Json[], others: readonly Json[]): Json[] {
  const left = others.map(canonicalJson)
  return rows.filter((row) => {
    const at = left.indexOf(canonicalJson(row))
    if (at !== -1) left.splice(at, 1)
    return at === -1
  })
}

function isAboutSame(one: Json, other: Json): boolean {
  return nameOf(one) !== undefined && nameOf(one) === nameOf(other)
}

/** Mounts are known by where they are. */
function nameOf(row: Json): string | undefined {
  return isObject(row) && typeof row.target === 'string' ? row.target : undefined
}

function fieldDifferences(expected: Json, found: Json): string {
  if (!isObject(expected) || !isObject(found)) return inShort(found)
  const names = [...new Set([...Object.keys(expected), ...Object.keys(found)])]
  return names
    .filter((name) => !isSame(expected[name] ?? null, found[name] ?? null))
    .map((name) => `${name} is ${inShort(found[name] ?? null)} instead of ${inShort(expected[name] ?? null)}`)
    .join(', ')
}

function inShort(value: Json): string {
  return typeof value === 'string' ? value : canonicalJson(value)
}

/** Looked at before every program starts, so without making texts of both. */
export function isSame(one: Json, other: Json): boolean {
  if (one === other) return true
  if (Array.isArray(one)) return Array.isArray(other) && one.length === other.length && one.every((item: Json, index) => isSame(item, other[index] as Json))
  if (!isObject(one) || !isObject(other)) return false
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every((name) => Object.hasOwn(other, name) && isSame(one[name] as Json, other[name] as Json))
}

export function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
