/** A file or folder of the host's on its way into a sandbox. */
import type { Stats } from 'node:fs'
import { constants } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import type { CallOptions } from '../contract/platform.js'
import { SandboxError } from '../contract/errors.js'
import { printable } from '../contract/printable.js'
import type { LocalSource, Skipped } from '../contract/transfer.js'
import { HostFolder } from './host-folder-handle.js'
import { localError } from './host-folder-error.js'
import { blockBytes, encodeHeader, paddingOf } from './tar-header.js'

/** As much as goes on its way at once. */
const pieceBytes = 256 * 1024
const setIdBits = 0o7000
const mostDepth = 512

/** Looks at all of it first, so that what cannot travel is told before anything does. */
export async function sendLocal(path: string, { signal }: CallOptions = {}): Promise<LocalSource> {
  try {
    signal?.throwIfAborted()
    const status = await stat(path)
    if (status.isFile()) return { type: 'file', mode: status.mode & 0o777, totalBytes: status.size, skipped: [], bytes: readWhole(path) }
    if (!status.isDirectory()) throw new SandboxError('invalid', `upload: ${printable(path)} is neither a file nor a folder`)
    return await sendFolder(path, signal)
  } catch (error) {
    throw localError('upload', path, error)
  }
}

/** Opened when it is read: whoever never reads it leaves nothing open. */
async function* readWhole(path: string): AsyncGenerator<Uint8Array, void, undefined> {
  let handle: FileHandle | undefined
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
    if (!(await handle.stat()).isFile()) throw new SandboxError('conflict', `upload: ${printable(path)} was changed while it was read`)
    const room = Buffer.allocUnsafeSlow(pieceBytes)
    for (;;) {
      const { bytesRead, buffer } = await handle.read(room, 0, pieceBytes)
      if (bytesRead === 0) return
      yield buffer.subarray(0, bytesRead)
    }
  } catch (error) {
    throw localError('upload', path, error)
  } finally {
    await handle?.close()
  }
}

async function sendFolder(path: string, signal: AbortSignal | undefined): Promise<LocalSource> {
  const skipped: Skipped[] = []
  let totalBytes = 2 * blockBytes
  for await (const found of walkFrom(path)) {
    signal?.throwIfAborted()
    const why = reasonToSkip(found.status)
    if (why === undefined) totalBytes += blockBytes + contentBytes(found.status) + paddingOf(contentBytes(found.status))
    else skipped.push({ path: found.below.toString('utf8'), why })
  }
  return { type: 'folder', mode: 0o755, totalBytes, skipped, bytes: archiveOf(path, signal) }
}

function contentBytes(status: Stats): number {
  return status.isFile() ? status.size : 0
}

function reasonToSkip(status: Stats): string | undefined {
  if (status.isFile() || status.isDirectory() || status.isSymbolicLink()) return undefined
  return status.isSocket() ? 'is a socket' : status.isFIFO() ? 'is a FIFO' : 'is a device'
}

interface Found {
  readonly folder: HostFolder
  readonly name: Buffer
  /** The path below the folder that travels. */
  readonly below: Buffer
  readonly status: Stats
}

async function* walkFrom(path: string): AsyncGenerator<Found, void, undefined> {
  await using folder = await HostFolder.open(path)
  yield* walk(folder, { below: Buffer.alloc(0), depth: 1 })
}

/** Each folder before what is in it. */
async function* walk(folder: HostFolder, place: { readonly below: Buffer; readonly depth: number }): AsyncGenerator<Found, void, undefined> {
  if (place.depth > mostDepth) throw new SandboxError('invalid', `upload: ${printable(place.below.toString())} is deeper than ${mostDepth} folders`)
  for (const name of await folder.names()) {
    const status = await folder.look(name)
    // Removed meanwhile.
    if (!status) continue
    const below = place.below.length === 0 ? name : Buffer.concat([place.below, Buffer.from('/'), name])
    yield { folder, name, below, status }
    if (!status.isDirectory()) continue
    await using inner = await folder.enter(name)
    yield* walk(inner, { below, depth: place.depth + 1 })
  }
}

async function* archiveOf(path: string, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    const room = Buffer.allocUnsafeSlow(pieceBytes)
    for await (const found of walkFrom(path)) {
      signal?.throwIfAborted()
      if (reasonToSkip(found.status) === undefined) yield* entryOf(found, room)
    }
    yield Buffer.alloc(2 * blockBytes)
  } catch (error) {
    throw localError('upload', path, error)
  }
}

async function* entryOf(found: Found, room: Buffer): AsyncGenerator<Uint8Array, void, undefined> {
  const { folder, name, below, status } = found
  const common = { name: below, target: Buffer.alloc(0), mode: status.mode & 0o7777 & ~setIdBits, size: 0, modifiedAtMs: Math.trunc(status.mtimeMs) }
  if (status.isSymbolicLink()) yield encodeHeader({ ...common, type: 'link', target: await folder.readLink(name) })
  // A folder that its owner may not write could not be filled.
  else if (status.isDirectory()) yield encodeHeader({ ...common, type: 'folder', name: Buffer.concat([below, Buffer.from('/')]), mode: common.mode | 0o700 })
  else yield* fileOf(found, common, room)
}

type Common = Omit<Parameters<typeof encodeHeader>[0], 'type'>

async function* fileOf({ folder, name, below }: Found, common: Common, room: Buffer): AsyncGenerator<Uint8Array, void, undefined> {
  const handle = await folder.openFile(name)
  try {
    const status = await handle.stat()
    if (!status.isFile()) throw changed(below)
    yield encodeHeader({ ...common, type: 'file', size: status.size })
    // What is written behind its end meanwhile stays here: the header has told its size.
    for (let rest = status.size; rest > 0; ) {
      const { bytesRead, buffer } = await handle.read(room, 0, Math.min(room.length, rest))
      if (bytesRead === 0) throw changed(below)
      rest -= bytesRead
      yield buffer.subarray(0, bytesRead)
    }
    if (paddingOf(status.size) > 0) yield Buffer.alloc(paddingOf(status.size))
  } finally {
    await handle.close()
  }
}

function changed(below: Buffer): SandboxError {
  return new SandboxError('conflict', `upload: ${printable(below.toString())} was changed while it was read`)
}
