/** The local disk as files and folders of a sandbox travel from it and to it. */
import { lstat, mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import { printable } from '../contract/printable.js'
import type { LocalFiles, Received, ReceiveOptions } from '../contract/transfer.js'
import { draftIn, leftDrafts, sweepDrafts } from './draft.js'
import { localError } from './host-folder-error.js'
import { HostFolder } from './host-folder-handle.js'
import { checkMerge, mergeFolder } from './host-folder-merge.js'
import { sendLocal } from './host-folder-send.js'
import { Staging, writeAll } from './host-folder-staging.js'
import { readTar } from './tar-reader.js'
import { removeTree } from './temp-folder.js'

/** Sparse files and links can stand for far more than a sandbox's disk holds. */
const defaultMostBytes = 4 * 2 ** 30
const defaultMostEntries = 1_000_000

export const localFiles: LocalFiles = { send: sendLocal, receiveFile, receiveFolder }

async function receiveFile(path: string, content: AsyncIterable<Uint8Array>, options: ReceiveOptions & { readonly mode?: number } = {}): Promise<Received> {
  const { mode = 0o644, mostBytes = defaultMostBytes, signal } = options
  try {
    const place = resolve(path)
    await checkPlace(place, options)
    sweepDrafts(dirname(place))
    const draft = draftIn(dirname(place))
    const handle = await open(draft, 'wx', mode & 0o777)
    let bytes = 0
    try {
      for await (const piece of content) {
        signal?.throwIfAborted()
        bytes += piece.length
        if (bytes > mostBytes) throw new SandboxError('full', `download: ${printable(path)} has more than ${mostBytes} bytes; mostBytes may be raised`)
        await writeAll(handle, piece)
      }
      await handle.close()
      await checkPlace(place, options)
      await rename(draft, place)
    } catch (error) {
      await handle.close().catch(() => undefined)
      await rm(draft, { force: true })
      throw error
    }
    return { entries: 1, bytes, skipped: [] }
  } catch (error) {
    throw localError('download', path, error)
  }
}

/** A file takes the place of a file or of nothing. */
async function checkPlace(place: string, { overwrite = false }: ReceiveOptions): Promise<void> {
  const there = await lstat(place).catch(() => undefined)
  if (there?.isDirectory() === true) throw new SandboxError('conflict', `download: ${printable(place)} is a folder`)
  if (there && !overwrite) throw new SandboxError('conflict', `download: ${printable(place)} is there already; overwrite replaces it`)
}

async function receiveFolder(path: string, archive: AsyncIterable<Uint8Array>, options: ReceiveOptions = {}): Promise<Received> {
  try {
    const place = resolve(path)
    const there = await stat(place).catch(() => undefined)
    if (there && !there.isDirectory()) throw new SandboxError('conflict', `download: ${printable(path)} is there already, and is no folder`)
    const home = there ? place : dirname(place)
    for (const left of leftDrafts(home, 'folder')) await removeTree(left).catch(() => undefined)
    const draft = draftIn(home)
    // With the mode that any new folder of this process gets: it is to take its place.
    await mkdir(draft)
    try {
      const received = await stage(draft, archive, options)
      if (there) await moveInto(draft, place, options)
      else await rename(draft, place)
      return received
    } finally {
      await removeTree(draft)
    }
  } catch (error) {
    throw localError('download', path, error)
  }
}

async function stage(draft: string, archive: AsyncIterable<Uint8Array>, options: ReceiveOptions): Promise<Received> {
  const { mostBytes = defaultMostBytes, mostEntries = defaultMostEntries, signal } = options
  await using root = await HostFolder.open(draft)
  await using staging = new Staging(root, { mostBytes, mostEntries })
  for await (const entry of readTar(archive)) {
    signal?.throwIfAborted()
    await staging.add(entry)
  }
  signal?.throwIfAborted()
  return staging.received
}

async function moveInto(draft: string, place: string, { overwrite = false }: ReceiveOptions): Promise<void> {
  await using from = await HostFolder.open(draft)
  await using to = await HostFolder.open(place)
  const merge = { from, to, overwrite, below: join(basename(place), '/') }
  await checkMerge(merge)
  await mergeFolder(merge)
}
