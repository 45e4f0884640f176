import { SandboxError } from './errors.js'

/** Far more than anything of ours has, and far less than would end the stack. */
const mostLevels = 100
const loneSurrogate = /\p{Surrogate}/u
const loneSurrogates = /\p{Surrogate}/gu
/** Of a pair or alone: most texts have none, which is told much sooner. */
const anySurrogate = /[\ud800-\udfff]/

/**
 * The one text that a JSON value has (RFC 8785): keys in the order of their UTF-16 code units, no white space, numbers and strings as ECMAScript prints them.
 * Throws SandboxError('invalid') for what JSON has no place for.
 */
export function canonicalJson(value: unknown): string {
  return print(value, [])
}

/** The same without names that have no value, and with lone surrogates replaced as they are for any program that is handed such text. */
export function presentable(value: unknown): unknown {
  if (typeof value === 'string') return wellFormed(value)
  if (Array.isArray(value)) return value.map(presentable)
  if (typeof value !== 'object' || value === null) return value
  const present = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(present.map(([name, member]) => [wellFormed(name), presentable(member)]))
}

function wellFormed(text: string): string {
  return anySurrogate.test(text) ? text.replace(loneSurrogates, '\ufffd') : text
}

/** The names and numbers that lead to where something is wrong; one list, which grows and shrinks, because it is only read then. */
type Place = (string | number)[]

function print(value: unknown, place: Place): string {
  if (place.length > mostLevels) throw refusal(place, `is nested more than ${mostLevels} levels deep`)
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return printNumber(value, place)
  if (typeof value === 'string') return printText(value, place)
  if (Array.isArray(value)) return `[${Array.from(value, (item, index) => printBelow(item, place, index)).join(',')}]`
  if (typeof value !== 'object' || !isPlain(value)) throw refusal(place, `is ${value === undefined ? 'undefined' : 'nothing that JSON has'}`)
  const members = value as Record<string, unknown>
  // The default order of sort is that of UTF-16 code units.
  const names = Object.keys(members).sort()
  return `{${names.map((name) => `${printText(name, place)}:${printBelow(members[name], place, name)}`).join(',')}}`
}

function printBelow(value: unknown, place: Place, step: string | number): string {
  place.push(step)
  const printed = print(value, place)
  place.pop()
  return printed
}

function printNumber(value: number, place: Place): string {
  if (!Number.isFinite(value)) throw refusal(place, `is ${value}`)
  return JSON.stringify(value)
}

function printText(value: string, place: Place): string {
  if (anySurrogate.test(value) && loneSurrogate.test(value)) throw refusal(place, 'holds half of a character')
  return JSON.stringify(value)
}

/** An object that is nothing but its own keys, and does not print itself as something else. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return (prototype === null || prototype === Object.prototype) && Object.getOwnPropertySymbols(value).length === 0
}

function refusal(place: Place, problem: string): SandboxError {
  const path = place.reduce<string>((path, step) => path + (typeof step === 'number' ? `[${step}]` : `.${step}`), 'value')
  return new SandboxError('invalid', `${path.slice(0, 200).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\uFFFD')}: ${problem}`)
}
