import { createHash } from 'node:crypto'
import { SandboxError } from '../contract/errors.js'

/** Far more than anything of ours has, and far less than would end the stack. */
const mostLevels = 100
const loneSurrogate = /\p{Surrogate}/u
const loneSurrogates = /\p{Surrogate}/gu

/**
 * The one text that a JSON value has (RFC 8785): keys in the order of their UTF-16 code units, no white space, numbers and strings as ECMAScript prints them.
 * Throws SandboxError('invalid') for what JSON has no place for.
 */
export function canonicalJson(value: unknown): string {
  return print(value, { path: 'value', level: 0 })
}

/** SHA-256, hexadecimal, of the canonical form, once what JSON has no place for is left out: see `presentable`. */
export function hashOf(value: unknown): string {
  return createHash('sha256')
    .update(canonicalJson(presentable(value)))
    .digest('hex')
}

/** The same without names that have no value, and with lone surrogates replaced as they are for any program that is handed such text. */
export function presentable(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(loneSurrogates, '\ufffd')
  if (Array.isArray(value)) return value.map(presentable)
  if (typeof value !== 'object' || value === null) return value
  const present = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(present.map(([name, member]) => [name.replace(loneSurrogates, '\ufffd'), presentable(member)]))
}

interface Place {
  readonly path: string
  readonly level: number
}

function print(value: unknown, place: Place): string {
  if (place.level > mostLevels) throw refusal(place, `is nested more than ${mostLevels} levels deep`)
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return printNumber(value, place)
  if (typeof value === 'string') return printText(value, place)
  if (Array.isArray(value)) return `[${Array.from(value, (item, index) => print(item, below(place, `[${index}]`))).join(',')}]`
  if (typeof value !== 'object' || !isPlain(value)) throw refusal(place, `is ${value === undefined ? 'undefined' : 'nothing that JSON has'}`)
  // The default order of sort is that of UTF-16 code units.
  const members = Object.entries(value as Record<string, unknown>).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${printText(name, place)}:${print(member, below(place, `.${name}`))}`).join(',')}}`
}

function printNumber(value: number, place: Place): string {
  if (!Number.isFinite(value)) throw refusal(place, `is ${value}`)
  return JSON.stringify(value)
}

function printText(value: string, place: Place): string {
  if (loneSurrogate.test(value)) throw refusal(place, 'holds half of a character')
  return JSON.stringify(value)
}

/** An object that is nothing but its own keys, and does not print itself as something else. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return (prototype === null || prototype === Object.prototype) && Object.getOwnPropertySymbols(value).length === 0
}

function below(place: Place, step: string): Place {
  return { path: `${place.path}${step}`, level: place.level + 1 }
}

function refusal({ path }: Place, problem: string): SandboxError {
  return new SandboxError('invalid', `${path.slice(0, 200)}: ${problem}`)
}
