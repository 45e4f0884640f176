import { SandboxError } from './errors.js'

/** An object that is nothing but its own keys: what a class or a Map holds elsewhere would be passed over without a word. */
function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  // Every realm has an Object.prototype of its own.
  return prototype === null || (Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'isPrototypeOf'))
}

/** What is wrong with something that is no plain object; undefined when it is one. */
export function plainObjectRefusal(value: unknown, field: string): SandboxError | undefined {
  return isPlainObject(value) ? undefined : new SandboxError('invalid', `${field}: expected a plain object, got ${kindOf(value)}`)
}

/** `null`, `NaN`, `an array`, `a Date`: what was given, without showing what is in it. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  if (typeof value !== 'object') return withArticle(typeof value)
  if (Array.isArray(value)) return 'an array'
  const { constructor } = value
  const name = typeof constructor === 'function' ? constructor.name : ''
  return /^[A-Za-z]\w{0,40}$/.test(name) && name !== 'Object' ? withArticle(name) : 'an object of another kind'
}

function withArticle(noun: string): string {
  // Said with a "you": a Uint8Array.
  return `${/^(?!ui)[aeiou]/i.test(noun) ? 'an' : 'a'} ${noun}`
}
