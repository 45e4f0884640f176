/** What of a request is written down, as a tenant's settings say. Pure; what is shown is redacted like everything else. */
import type { AuditSettings } from '../contract/audit.js'
import { canonicalJson, presentable } from '../contract/canonical-json.js'
import type { Json } from '../contract/posture.js'
import { sha256 } from './chain.js'

const mostTextBytes = 64 * 1024
const mostDepth = 20

type Shown = Record<string, Json>

/** A command or a piece of code: all of it with its hash, or only that. A long one is cut, and its hash is of the whole. */
export function shownCode(code: string | readonly string[], settings: AuditSettings): Shown {
  // As a receipt hashes a command.
  const hash = sha256(canonicalJson(presentable(code)))
  if (settings.code === 'hash') return { sha256: hash }
  const text = typeof code === 'string' ? code : JSON.stringify(code)
  if (Buffer.byteLength(text) <= mostTextBytes) return { text: typeof code === 'string' ? code : [...code], sha256: hash }
  return { text: Buffer.from(text).subarray(0, mostTextBytes).toString('utf8'), isCut: true, sha256: hash }
}

function shownEnv(env: unknown, settings: AuditSettings): Json {
  if (typeof env !== 'object' || env === null) return null
  return settings.env === 'names' ? Object.keys(env).sort() : shownValue(env)
}

/** A spec, a run's request or a network, before anybody has looked whether it is one. */
export function shownRequest(request: unknown, settings: AuditSettings): Shown {
  if (typeof request !== 'object' || request === null || Array.isArray(request)) return { given: shownValue(request) }
  const { command, code, env, seccomp, ...rest } = request as Record<string, unknown>
  return {
    ...(isCode(command) && { command: shownCode(command, settings) }),
    ...(isCode(code) && { code: shownCode(code, settings) }),
    ...(env !== undefined && { env: shownEnv(env, settings) }),
    ...(seccomp !== undefined && { seccomp: typeof seccomp === 'string' ? seccomp : { sha256: sha256(JSON.stringify(shownValue(seccomp))) } }),
    ...(shownValue(rest) as Shown),
  }
}

function isCode(value: unknown): value is string | readonly string[] {
  return typeof value === 'string' || (Array.isArray(value) && value.every((part) => typeof part === 'string'))
}

/** As JSON has it, whatever it is: secrets print themselves as such, and functions are left out. */
export function shownValue(value: unknown, depth = 0): Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (typeof value !== 'object') return `(${typeof value})`
  if (depth > mostDepth) return '(nested too deeply)'
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1')
  if ('toJSON' in value && typeof value.toJSON === 'function') return String((value as { toJSON(): unknown }).toJSON())
  if (Array.isArray(value)) return value.map((item) => shownValue(item, depth + 1))
  const members = Object.entries(value).filter(([, member]) => member !== undefined && typeof member !== 'function')
  return Object.fromEntries(members.map(([name, member]) => [name, shownValue(member, depth + 1)]))
}
