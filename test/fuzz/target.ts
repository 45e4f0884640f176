/** What is fuzzed: a parser, and what it promises whatever it is given. Run by `npm run fuzz`, and with all that is kept by `kept.test.ts`. */
import { SandboxError } from '../../src/contract/errors.js'

export interface FuzzTarget {
  readonly name: string
  /** Bytes of one input. */
  readonly most: number
  readonly seeds: readonly (string | Uint8Array)[]
  /** Throws where a promise is broken. */
  readonly run: (bytes: Uint8Array) => void | Promise<void>
}

export function holds(isSo: boolean, promise: string): void {
  if (!isSo) throw new Error(`promise broken: ${promise}`)
}

export function isSame(one: unknown, other: unknown, promise: string): void {
  const [a, b] = [shown(one), shown(other)]
  if (a !== b) throw new Error(`promise broken: ${promise}: ${a.slice(0, 300)} is not ${b.slice(0, 300)}`)
}

function shown(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => (typeof each === 'bigint' ? `${each}n` : each instanceof Uint8Array ? [...each] : each)) ?? 'undefined'
}

/** What it gives, or undefined where it refuses in its own way; anything else that is thrown is a finding. */
export function unlessRefused<Value>(act: () => Value, isOwn: (error: unknown) => boolean = isRefusal): Value | undefined {
  try {
    return act()
  } catch (error) {
    if (isOwn(error)) return undefined
    throw error
  }
}

export async function unlessRefusedLater<Value>(act: () => Promise<Value>, isOwn: (error: unknown) => boolean = isRefusal): Promise<Value | undefined> {
  try {
    return await act()
  } catch (error) {
    if (isOwn(error)) return undefined
    throw error
  }
}

/** One of ours, in words that act on no terminal, and no defect. */
export function isRefusal(error: unknown): boolean {
  return error instanceof SandboxError && error.code !== 'internal' && error.message !== '' && !/[\x00-\x08\x0b-\x1f\x7f]/.test(error.message)
}

export const textIn = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

/** Undefined where it is none. */
export function jsonIn(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(textIn(bytes))
  } catch {
    return undefined
  }
}

/** In pieces whose lengths the bytes themselves say. */
export function cut(bytes: Uint8Array): Uint8Array[] {
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = 1 + ((bytes[at] ?? 0) % 61)
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}

export async function* laterIn(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void, undefined> {
  for (const piece of pieces) yield await Promise.resolve(piece)
}

export function u32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  values.forEach((value, index) => bytes.writeUInt32LE(value >>> 0, 4 * index))
  return bytes
}
