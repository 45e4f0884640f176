/** The local disk as files and folders of a sandbox travel from it and to it. */
import { basename, join, resolve } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import { printable } from '../contract/printable.js'
import type { LocalFiles, Received, ReceiveOptions } from '../contract/transfer.js'
import { localError } from './host-folder-error.js'
import type { HostFolder } from './host-folder-handle.js'
import { Incoming } from './host-folder-incoming.js'
import { checkMerge, type Merge, mergeFolder } from './host-folder-merge.js'
import { moveEntry } from './host-folder-move.js'
import { makePrivateFolder } from './host-folder-private.js'
import { sendLocal } from './host-folder-send.js'
import { Staging, writeAll } from './host-folder-staging.js'
import { type LocalPlace, openPlace } from './host-folder-way.js'
import { readTar } from './tar-reader.js'

/*
 * Where something is to be put may be a folder that a guest writes in too. So its place is opened once and held, what comes is made whole in a folder of our
 * own that no guest reaches, and only then moved into the folder that is held: at no time does a name that a guest may have changed lead anywhere else.
 */

/** Sparse files and links can stand for far more than a sandbox's disk holds. */
const defaultMostBytes = 4 * 2 ** 30
const defaultMostEntries = 1_000_000

const staged = Buffer.from('staged')

export const localFiles: LocalFiles = { send: sendLocal, receiveFile, receiveFolder }

async function receiveFile(path: string, content: AsyncIterable<Uint8Array>, options: ReceiveOptions & { readonly mode?: number } = {}): Promise<Received> {
  try {
    await using incoming = new Incoming(content)
    await using place = await openPlace(path, 'download')
    await checkFilePlace(place, { path, ...options })
    await using own = await makePrivateFolder(place.folder)
    const bytes = await own.fill((folder) => stageFile(folder, incoming, { path, ...options }))
    await checkFilePlace(place, { path, ...options })
    await moveEntry({ folder: own.folder, name: staged }, place, { notes: own.notes, signal: options.signal })
    return { entries: 1, bytes, skipped: [] }
  } catch (error) {
    throw localError('download', path, error)
  }
}

interface FileOptions extends ReceiveOptions {
  readonly path: string
  readonly mode?: number
}

async function stageFile(folder: HostFolder, content: AsyncIterable<Uint8Array>, options: FileOptions): Promise<number> {
  const { path, mode = 0o644, mostBytes = defaultMostBytes, signal } = options
  const handle = await folder.createFile(staged, mode & 0o777)
  let bytes = 0
  try {
    for await (const piece of content) {
      signal?.throwIfAborted()
      bytes += piece.length
      if (bytes > mostBytes) throw new SandboxError('full', `download: ${printable(path)} has more than ${mostBytes} bytes; mostBytes may be raised`)
      await writeAll(handle, piece)
    }
  } finally {
    await handle.close()
  }
  return bytes
}

/** A file takes the place of a file or of nothing. */
async function checkFilePlace({ folder, name }: LocalPlace, { path, overwrite = false }: FileOptions): Promise<void> {
  const there = await folder.look(name)
  if (there?.isDirectory() === true) throw new SandboxError('conflict', `download: ${printable(path)} is a folder`)
  if (there?.isSymbolicLink() === true) throw linkError(path)
  if (there && !overwrite) throw new SandboxError('conflict', `download: ${printable(path)} is there already; overwrite replaces it`)
}

function linkError(path: string): SandboxError {
  return new SandboxError('conflict', `download: ${printable(path)} is a link, and none is followed`, { hint: `ls -l '${printable(path)}'` })
}

async function receiveFolder(path: string, archive: AsyncIterable<Uint8Array>, options: ReceiveOptions = {}): Promise<Received> {
  try {
    await using incoming = new Incoming(archive)
    await using place = await openPlace(path, 'download')
    await using there = await enterIfThere(place, path)
    await using own = await makePrivateFolder(there?.folder ?? place.folder)
    // With the mode that any new folder of this process gets: it is to take its place.
    await own.folder.createFolder(staged, 0o777)
    await using from = await own.folder.enter(staged)
    const received = await own.fill(() => stage(from, incoming, options))
    if (there) await mergeInto(there.folder, { from, path, copying: { notes: own.notes, signal: options.signal }, ...options })
    else await moveEntry({ folder: own.folder, name: staged }, place, { notes: own.notes, signal: options.signal })
    return received
  } catch (error) {
    throw localError('download', path, error)
  }
}

/** The folder that is to be filled, held from now on. */
async function enterIfThere({ folder, name }: LocalPlace, path: string): Promise<(AsyncDisposable & { readonly folder: HostFolder }) | undefined> {
  const there = await folder.look(name)
  if (!there) return undefined
  if (there.isSymbolicLink()) throw linkError(path)
  if (!there.isDirectory()) throw new SandboxError('conflict', `download: ${printable(path)} is there already, and is no folder`)
  const held = await folder.enter(name)
  return { folder: held, [Symbol.asyncDispose]: () => held[Symbol.asyncDispose]() }
}

async function stage(root: HostFolder, archive: AsyncIterable<Uint8Array>, options: ReceiveOptions): Promise<Received> {
  const { mostBytes = defaultMostBytes, mostEntries = defaultMostEntries, signal } = options
  await using staging = new Staging(root, { mostBytes, mostEntries })
  for await (const entry of readTar(archive)) {
    signal?.throwIfAborted()
    await staging.add(entry)
  }
  signal?.throwIfAborted()
  return staging.received
}

interface Merging extends ReceiveOptions, Pick<Merge, 'from' | 'copying'> {
  readonly path: string
}

async function mergeInto(to: HostFolder, { from, copying, path, overwrite = false }: Merging): Promise<void> {
  const merge = { from, to, overwrite, copying, below: join(basename(resolve(path)), '/') }
  await checkMerge(merge)
  await mergeFolder(merge)
}
