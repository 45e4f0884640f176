/** What may be a path in a cell, and which one is meant: text alone, since only the cell's kernel may look at links. */
import { SandboxError } from '../contract/errors.js'
import type { FilePath } from '../contract/files.js'
import { kindOf } from '../contract/plain-object.js'
import { printable } from './refusal.js'

/** Where paths that are not absolute begin. */
export interface PathPlace {
  readonly workdir: string
  readonly home: string
}

/** The kernel's, without the NUL at the end. */
const mostPathBytes = 4095

const slash = 0x2f
const tilde = 0x7e
const dot = 0x2e
/** A surrogate without its other half, which UTF-8 has no bytes for. */
const halfCharacter = /\p{Surrogate}/u
const encoder = new TextEncoder()

/** Absolute. Throws SandboxError('invalid') naming the field. `..` stays: what is above a link is for the kernel to say. */
export function absolutePath(path: unknown, place: PathPlace, field = 'path'): Uint8Array {
  const absolute = startingAt(pathBytes(path, field), place)
  checkLength(absolute, field)
  return absolute
}

/** As it is to be written into a link: relative ones stay so. */
export function linkTarget(target: unknown): Uint8Array {
  return pathBytes(target, 'target')
}

/** For messages: short, and nothing in it acts on a terminal. */
export function describePath(path: FilePath): string {
  return printable(typeof path === 'string' ? path : new TextDecoder().decode(path))
}

function pathBytes(path: unknown, field: string): Uint8Array {
  if (typeof path !== 'string' && !(path instanceof Uint8Array)) {
    throw new SandboxError('invalid', `${field}: expected a string or bytes (Uint8Array), got ${kindOf(path)}`)
  }
  if (typeof path === 'string' && halfCharacter.test(path)) {
    throw new SandboxError('invalid', `${field}: '${printable(path)}' is no text: it has half of a character; a name that is not UTF-8 is given as bytes`)
  }
  // A copy: what is checked here must be what is sent.
  const bytes = typeof path === 'string' ? encoder.encode(path) : Uint8Array.from(path)
  if (bytes.length === 0) throw new SandboxError('invalid', `${field}: must not be empty`)
  checkLength(bytes, field)
  if (bytes.includes(0)) throw new SandboxError('invalid', `${field}: ${describePath(bytes)} contains a NUL character`)
  return bytes
}

function checkLength(path: Uint8Array, field: string): void {
  if (path.length <= mostPathBytes) return
  throw new SandboxError(
    'invalid',
    `${field}: ${describePath(path.subarray(0, mostPathBytes))} has ${path.length} bytes; at most ${mostPathBytes} are possible`,
  )
}

function startingAt(path: Uint8Array, { workdir, home }: PathPlace): Uint8Array {
  if (path[0] === slash) return path
  const isOfHome = path[0] === tilde && (path.length === 1 || path[1] === slash)
  const folder = encoder.encode((isOfHome ? home : workdir).replace(/\/+$/, ''))
  const below = withoutDots(isOfHome ? path.subarray(2) : path)
  if (below.length === 0 && folder.length > 0) return folder
  const joined = new Uint8Array(folder.length + 1 + below.length)
  joined.set(folder)
  joined[folder.length] = slash
  joined.set(below, folder.length + 1)
  return joined
}

/** `./a` is `a`, and `.` nothing: the one thing that text alone can tell. */
function withoutDots(path: Uint8Array): Uint8Array {
  let at = 0
  while (path[at] === dot && (at + 1 === path.length || path[at + 1] === slash)) {
    at += 1
    while (path[at] === slash) at += 1
  }
  return path.subarray(at)
}
