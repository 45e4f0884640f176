/**
 * A file or folder of the host's on its way into a sandbox. A guest that it is shared with may swap anything in it for a link at any time: the way to it is
 * walked once, what it leads to is held open until it has been sent, and everything in it is reached through what is held.
 */
import type { Stats } from 'node:fs'
import { constants } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { CallOptions } from '../contract/platform.js'
import { SandboxError } from '../contract/errors.js'
import { printable } from '../contract/printable.js'
import type { LocalSource, Skipped } from '../contract/transfer.js'
import type { HostFolder } from './host-folder-handle.js'
import { localError } from './host-folder-error.js'
import { openPlace } from './host-folder-way.js'
import { blockBytes, encodeHeader, paddingOf } from './tar-header.js'

/** As much as goes on its way at once. */
const pieceBytes = 256 * 1024
const setIdBits = 0o7000
const mostDepth = 512

/** What the system says when something is no longer what it was when it was looked at. */
const changedCodes = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EINVAL', 'ENXIO'])

/** Looks at all of it first, so that what cannot travel is told before anything does. */
export async function sendLocal(path: string, { signal }: CallOptions = {}): Promise<LocalSource> {
  try {
    signal?.throwIfAborted()
    await using place = await openPlace(path, 'upload')
    const status = await place.folder.look(place.name)
    if (!status) throw new SandboxError('not-found', `upload: ${printable(path)} on this machine does not exist`)
    if (status.isSymbolicLink()) throw linkError(path)
    const found = { folder: place.folder, name: place.name, below: Buffer.from(path), status }
    if (status.isFile()) return await sendFile(await openSame(found), path)
    if (!status.isDirectory()) throw new SandboxError('invalid', `upload: ${printable(path)} is neither a file nor a folder`)
    return await sendFolder(await enterSame(found), { path, signal })
  } catch (error) {
    throw localError('upload', path, error)
  }
}

function linkError(path: string): SandboxError {
  return new SandboxError('conflict', `upload: ${printable(path)} is a link, and none is followed`, { hint: `realpath -- '${printable(path)}'` })
}

async function sendFile(handle: FileHandle, path: string): Promise<LocalSource> {
  try {
    const { mode, size } = await handle.stat()
    const bytes = readWhole(handle, { path, size })
    return { type: 'file', mode: mode & 0o777, totalBytes: size, skipped: [], bytes, [Symbol.asyncDispose]: () => leave(bytes, () => handle.close()) }
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** A reader that is at work is waited for: a descriptor's number that is free again may soon be another's. One that never began closes nothing itself. */
async function leave(bytes: AsyncGenerator<Uint8Array, void, undefined>, close: () => Promise<void>): Promise<void> {
  await bytes.return()
  await close()
}

async function* readWhole(handle: FileHandle, { path, size }: { readonly path: string; readonly size: number }): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    const room = Buffer.allocUnsafeSlow(pieceBytes)
    yield* size > 0 ? contentOf(handle, { size, below: Buffer.from(path), room }) : untilEnd(handle, room)
  } catch (error) {
    throw localError('upload', path, error)
  } finally {
    await handle.close()
  }
}

/** Those of /proc have content and tell no size. */
async function* untilEnd(handle: FileHandle, room: Buffer): AsyncGenerator<Uint8Array, void, undefined> {
  for (;;) {
    const { bytesRead, buffer } = await handle.read(room, 0, room.length)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
  }
}

interface Sending {
  readonly path: string
  readonly signal: AbortSignal | undefined
}

async function sendFolder(folder: HostFolder, sending: Sending): Promise<LocalSource> {
  try {
    const skipped: Skipped[] = []
    let totalBytes = 2 * blockBytes
    for await (const found of walk(folder, top)) {
      sending.signal?.throwIfAborted()
      const why = reasonToSkip(found.status)
      if (why === undefined) totalBytes += blockBytes + contentBytes(found.status) + paddingOf(contentBytes(found.status))
      else skipped.push({ path: found.below.toString('utf8'), why })
    }
    const bytes = archiveOf(folder, sending)
    return { type: 'folder', mode: 0o755, totalBytes, skipped, bytes, [Symbol.asyncDispose]: () => leave(bytes, () => folder[Symbol.asyncDispose]()) }
  } catch (error) {
    await folder[Symbol.asyncDispose]()
    throw error
  }
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

interface Depth {
  readonly below: Buffer
  readonly depth: number
}

const top: Depth = { below: Buffer.alloc(0), depth: 1 }

/** Each folder before what is in it, and held by then: what is told of is what is entered. */
async function* walk(folder: HostFolder, place: Depth): AsyncGenerator<Found, void, undefined> {
  if (place.depth > mostDepth) throw new SandboxError('invalid', `upload: ${printable(place.below.toString())} is deeper than ${mostDepth} folders`)
  for (const name of await folder.names()) {
    const status = await folder.look(name)
    // Removed meanwhile.
    if (!status) continue
    const below = place.below.length === 0 ? name : Buffer.concat([place.below, Buffer.from('/'), name])
    const found = { folder, name, below, status }
    if (!status.isDirectory()) {
      yield found
      continue
    }
    await using inner = await enterSame(found)
    yield found
    yield* walk(inner, { below, depth: place.depth + 1 })
  }
}

async function enterSame({ folder, name, below, status }: Found): Promise<HostFolder> {
  const inner = await unlessChanged(below, folder.enter(name))
  if (isSame(await inner.status(), status)) return inner
  await inner[Symbol.asyncDispose]()
  throw changed(below)
}

async function openSame({ folder, name, below, status }: Found): Promise<FileHandle> {
  const handle = await unlessChanged(below, folder.openFile(name))
  if (isSame(await handle.stat(), status)) return handle
  await handle.close()
  throw changed(below)
}

/** The number of one that was removed may be another's by now, so that its type counts too. */
function isSame(one: Stats, other: Stats): boolean {
  return one.dev === other.dev && one.ino === other.ino && (one.mode & constants.S_IFMT) === (other.mode & constants.S_IFMT)
}

async function unlessChanged<Value>(below: Buffer, asking: Promise<Value>): Promise<Value> {
  try {
    return await asking
  } catch (error) {
    throw changedCodes.has((error as NodeJS.ErrnoException).code ?? '') ? changed(below) : error
  }
}

async function* archiveOf(folder: HostFolder, { path, signal }: Sending): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    const room = Buffer.allocUnsafeSlow(pieceBytes)
    for await (const found of walk(folder, top)) {
      signal?.throwIfAborted()
      if (reasonToSkip(found.status) === undefined) yield* entryOf(found, room)
    }
    yield Buffer.alloc(2 * blockBytes)
  } catch (error) {
    throw localError('upload', path, error)
  } finally {
    await folder[Symbol.asyncDispose]()
  }
}

async function* entryOf(found: Found, room: Buffer): AsyncGenerator<Uint8Array, void, undefined> {
  const { folder, name, below, status } = found
  const common = { name: below, target: Buffer.alloc(0), mode: status.mode & 0o7777 & ~setIdBits, size: 0, modifiedAtMs: Math.trunc(status.mtimeMs) }
  if (status.isSymbolicLink()) yield encodeHeader({ ...common, type: 'link', target: await unlessChanged(below, folder.readLink(name)) })
  // A folder that its owner may not write could not be filled.
  else if (status.isDirectory()) yield encodeHeader({ ...common, type: 'folder', name: Buffer.concat([below, Buffer.from('/')]), mode: common.mode | 0o700 })
  else yield* fileOf(found, common, room)
}

type Common = Omit<Parameters<typeof encodeHeader>[0], 'type'>

async function* fileOf(found: Found, common: Common, room: Buffer): AsyncGenerator<Uint8Array, void, undefined> {
  const handle = await openSame(found)
  try {
    const { size } = await handle.stat()
    yield encodeHeader({ ...common, type: 'file', size })
    yield* contentOf(handle, { size, below: found.below, room })
    if (paddingOf(size) > 0) yield Buffer.alloc(paddingOf(size))
  } finally {
    await handle.close()
  }
}

interface Content {
  readonly size: number
  readonly below: Buffer
  readonly room: Buffer
}

/** What is written behind its end meanwhile stays here: its size has been told. */
async function* contentOf(handle: FileHandle, { size, below, room }: Content): AsyncGenerator<Uint8Array, void, undefined> {
  for (let rest = size; rest > 0; ) {
    const { bytesRead, buffer } = await handle.read(room, 0, Math.min(room.length, rest))
    if (bytesRead === 0) throw changed(below)
    rest -= bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

function changed(below: Buffer): SandboxError {
  return new SandboxError('conflict', `upload: ${printable(below.toString())} was changed while it was read`)
}
