import type { ErrorCode } from '../contract/errors.js'
import { SandboxError } from '../contract/errors.js'
import type { Outcome } from '../contract/run.js'
import type { SubjectResult } from './subject.js'

/** A promise that does not hold, and what was seen instead. */
export class CaseFailure extends Error {
  override readonly name = 'CaseFailure'
  readonly observed: string

  constructor(message: string, observed: string) {
    super(message)
    this.observed = observed
  }
}

export function ensure(holds: boolean, message: string, observed: unknown): asserts holds {
  if (!holds) throw new CaseFailure(message, show(observed))
}

/** Compares plain values by their whole content. */
export function ensureSame(observed: unknown, expected: unknown, what: string): void {
  const [seen, wanted] = [canonical(observed), canonical(expected)]
  ensure(seen === wanted, `${what} must be ${shorten(wanted)}`, seen)
}

export function ensureBytes(observed: Uint8Array, expected: Uint8Array, what: string): void {
  const at = firstDifference(observed, expected)
  if (at === undefined) return
  throw new CaseFailure(
    `${what} must be ${expected.length} exact bytes`,
    `${observed.length} bytes, the first difference at ${at}: ${hex(observed, at)} instead of ${hex(expected, at)}`,
  )
}

function firstDifference(left: Uint8Array, right: Uint8Array): number | undefined {
  const shared = Math.min(left.length, right.length)
  for (let at = 0; at < shared; at += 1) if (left[at] !== right[at]) return at
  return left.length === right.length ? undefined : shared
}

function hex(bytes: Uint8Array, at: number): string {
  const part = [...bytes.subarray(at, at + 8)].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
  return part === '' ? '(the end)' : part
}

/** The command ran and exited with this code; its stdout as text. */
export function ensureExited(result: SubjectResult, code = 0): string {
  const stderr = text(result.stderr).slice(-300)
  ensure(canonical(result.outcome) === canonical({ kind: 'exited', code } satisfies Outcome), `must exit with ${code}`, `${show(result.outcome)} ${stderr}`)
  return text(result.stdout)
}

/** Rejects with a `SandboxError` of one of these codes; resolves to it. */
export async function ensureRejects(promise: Promise<unknown>, codes: readonly ErrorCode[]): Promise<SandboxError> {
  const error = await rejectionOf(promise)
  ensure(isSandboxError(error) && codes.includes(error.code), `must reject with ${codes.join(' or ')}`, error)
  return error
}

/** What a promise rejects with; a promise that resolves is a failure. */
export async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  const settled = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  )
  if ('error' in settled) return settled.error
  throw new CaseFailure('must reject', `it resolved: ${show(settled.value)}`)
}

/** By name as well as by class: the package may be loaded twice in one process. */
function isSandboxError(error: unknown): error is SandboxError {
  return error instanceof SandboxError || (error instanceof Error && error.name === 'SandboxError' && 'code' in error)
}

export function show(value: unknown): string {
  if (typeof value === 'string') return shorten(value)
  if (value instanceof Error) return shorten(`${value.name}${'code' in value ? ` ${String(value.code)}` : ''}: ${value.message}`)
  return shorten(canonical(value))
}

function shorten(value: string): string {
  return value.length > 600 ? `${value.slice(0, 600)}… (${value.length} characters)` : value
}

/** JSON with sorted keys, so that equal values have equal texts. */
function canonical(value: unknown): string {
  return value === undefined ? 'undefined' : JSON.stringify(value, sortKeys)
}

function sortKeys(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Uint8Array) return text(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)))
}

export function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes)
}

export function bytesOf(value: string): Uint8Array {
  return new TextEncoder().encode(value)
}
