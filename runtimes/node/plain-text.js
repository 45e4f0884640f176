// The text of a value, as Node's own prompt shows it, and never an exception.
import { boundedJson } from './json.js'

const mostKeys = 1000
const inspecting = { depth: 6, maxArrayLength: 200, breakLength: 100, compact: 3, showProxy: false }

/** @returns {{ text: string, isCut: boolean }} */
export function plainText(system, value, mostBytes) {
  try {
    if (typeof value !== 'string') return objectText(system, value, mostBytes)
    const isCut = value.length > mostBytes
    return { text: system.inspect(isCut ? value.slice(0, mostBytes) : value, { ...inspecting, maxStringLength: null }), isCut }
  } catch (error) {
    // Node's own inspection does not survive a broken Array.prototype.
    const { json } = system.types.isProxy(value) || hasInspection(system, value) ? {} : boundedJson(value, mostBytes)
    return { text: json ?? `[${kindOf(value)} that cannot be shown: ${messageOf(system, error)}]`, isCut: false }
  }
}

/** Node bounds the items of collections, not the keys of an object. */
function objectText(system, value, mostBytes) {
  const settings = { ...inspecting, maxStringLength: mostBytes }
  const count = isCustom(system, value) ? 0 : Object.keys(value).length
  if (count <= mostKeys) return { text: system.inspect(value, settings), isCut: false }
  const some = Object.create(Object.getPrototypeOf(value))
  for (const key of Object.keys(value).slice(0, mostKeys)) Object.defineProperty(some, key, Object.getOwnPropertyDescriptor(value, key))
  return { text: `${system.inspect(some, settings)}\n… ${count - mostKeys} more keys`, isCut: true }
}

/** Whether it is bounded, or shown, in another way than by its keys. */
function isCustom(system, value) {
  if (typeof value !== 'object' || value === null || system.types.isProxy(value)) return true
  return Array.isArray(value) || ArrayBuffer.isView(value) || hasInspection(system, value)
}

function hasInspection(system, value) {
  try {
    return typeof value[system.inspect.custom] === 'function'
  } catch {
    return true
  }
}

function kindOf(value) {
  return typeof value === 'function' ? 'function' : 'object'
}

/** Of something thrown, whatever it is. */
export function messageOf(system, error) {
  try {
    const { name, message } = error
    if (typeof message === 'string') return typeof name === 'string' ? `${name}: ${message}` : message
    return system.inspect(error, { depth: 1 })
  } catch {
    return 'something that cannot be shown either'
  }
}
