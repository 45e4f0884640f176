import { SandboxError } from '../contract/errors.js'
import { plainObjectRefusal } from '../contract/plain-object.js'
import { printable } from '../contract/printable.js'
import { Secret } from '../contract/secret-value.js'

/**
 * A value as JSON. What JSON would change without a word is refused by the name of its field, as a platform in this process would refuse it; a secret is on its way to
 * where it is used.
 */
export function wireJson(value: unknown, what: string): string {
  return JSON.stringify(plain(value, '', what) ?? {})
}

function plain(value: unknown, field: string, what: string): unknown {
  if (value === undefined || value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return value
    throw new SandboxError('invalid', `${field === '' ? what : field}: expected a finite number, got ${value}`)
  }
  if (value instanceof Secret) return value.reveal()
  if (Array.isArray(value)) return Array.from(value as unknown[], (item, index) => plain(item ?? null, `${field}[${index}]`, what))
  const refusal = plainObjectRefusal(value, field === '' ? what : field)
  if (refusal) throw refusal
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each, nameOf(field, key), what)]))
}

function nameOf(field: string, key: string): string {
  const name = field === '' ? printable(key) : `${field}.${printable(key)}`
  if (key === '__proto__') throw new SandboxError('invalid', `${name}: is not a possible name`)
  return name
}
