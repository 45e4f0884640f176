import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { localFiles } from '../../compose.js'
import { SandboxError } from '../../contract/errors.js'
import type { FileCalls, FileOptions } from '../../contract/files.js'
import type { UserName } from '../../contract/spec.js'
import { userNames } from '../../contract/spec-words.js'
import { SandboxFiles, type Transferred } from '../../sandbox/index.js'
import { type Surroundings, withPlatform } from '../choose-platform.js'
import { type CopyEnd, lastName, meansContents, parseCopy } from '../copy-ends.js'
import { exitCodes } from '../exit-codes.js'
import { oneOfFlag } from '../flag-values.js'
import { openInput } from '../input.js'
import { untilAborted } from '../interrupts.js'
import { printJson } from '../print.js'
import { findSandbox } from '../sandbox-reference.js'
import { writeTo } from '../streams.js'
import { type Moving, moved } from '../transfers.js'

export interface CpFlags {
  readonly user?: string
  readonly force?: true
  readonly json?: true
  readonly quiet?: true
}

type SandboxEnd = Extract<CopyEnd, { kind: 'sandbox' }>

/** An end of a sandbox, found. */
interface Inside {
  readonly files: FileCalls
  readonly path: string
}

interface Copy {
  readonly flags: CpFlags
  readonly options: FileOptions & { readonly signal: AbortSignal }
}

/** Files and folders between this machine and a sandbox, or two sandboxes. */
export async function cp(from: string, to: string, flags: CpFlags): Promise<number> {
  const ends = parseCopy(from, to)
  const user: UserName | undefined = oneOfFlag('--user', userNames, flags.user)
  return withPlatform('kept', async (surroundings) => {
    const copy: Copy = { flags, options: { signal: surroundings.signal, ...(user !== undefined && { user }) } }
    const source = ends.from.kind === 'sandbox' ? await inside(ends.from, surroundings) : ends.from
    const target = ends.to.kind === 'sandbox' ? await inside(ends.to, surroundings) : ends.to
    const isToStream = 'kind' in target && target.kind === 'stream'
    if (isToStream && flags.json) throw new SandboxError('invalid', "--json: stdout is the file's", { hint: 'glovebox cp --help' })
    const moving = await movingOf(source, target, copy)
    const done = await Promise.race([moved(`${from} to ${to}`, flags, moving), untilAborted(surroundings.signal)])
    if (flags.json) await printJson(done)
    return exitCodes.ok
  })
}

async function inside({ sandbox, path }: SandboxEnd, { platform, signal }: Surroundings): Promise<Inside> {
  const { id } = await findSandbox(platform, sandbox, signal)
  return { files: platform.files.of(id), path }
}

type Found = Inside | Exclude<CopyEnd, SandboxEnd>

async function movingOf(source: Found, target: Found, copy: Copy): Promise<Moving> {
  if ('files' in source && 'files' in target) return between(source, target, copy)
  if ('files' in target) return (source as CopyEnd).kind === 'stream' ? fromStdin(target, copy) : upload((source as { path: string }).path, target, copy)
  if ('files' in source) return (target as CopyEnd).kind === 'stream' ? toStdout(source, copy) : download(source, (target as { path: string }).path, copy)
  throw new SandboxError('internal', 'neither end of the copy is of a sandbox')
}

async function upload(path: string, { files, path: wanted }: Inside, { options }: Copy): Promise<Moving> {
  const from = resolve(path)
  const isFolder = statSync(from, { throwIfNoEntry: false })?.isDirectory() === true
  const to = await placeIn({ files, path: wanted }, { name: lastName(from), isContents: isFolder && meansContents(path), options })
  return (onProgress) => new SandboxFiles({ files, local: localFiles }).upload(from, to, { ...options, onProgress })
}

async function download({ files, path }: Inside, wanted: string, { flags, options }: Copy): Promise<Moving> {
  const isFolder = await isFolderAt({ files, path }, options)
  const there = statSync(wanted, { throwIfNoEntry: false })
  const name = lastName(path)
  const isInto = (there?.isDirectory() === true || wanted.endsWith('/')) && name !== undefined && !(isFolder && meansContents(path))
  const to = resolve(isInto ? join(wanted, name) : wanted)
  return (onProgress) => new SandboxFiles({ files, local: localFiles }).download(path, to, { ...options, overwrite: flags.force === true, onProgress })
}

/** Into a folder that is there, under its own name; as cp does. */
async function placeIn(
  { files, path }: Inside,
  { name, isContents, options }: { name: string | undefined; isContents: boolean; options: FileOptions },
): Promise<string> {
  if (isContents || name === undefined) return path
  const isInto = path.endsWith('/') || (await isFolderAt({ files, path }, options))
  return isInto ? `${path.replace(/\/+$/, '')}/${name}` : path
}

/** Whether it is a folder, or a link to one. */
async function isFolderAt({ files, path }: Inside, options: FileOptions): Promise<boolean> {
  const plain = path.replace(/(?<=[^/])\/+$/, '')
  const entry = await files.stat(plain, options)
  if (entry?.type !== 'link') return entry?.type === 'folder'
  try {
    return (await files.stat(`${plain}/.`, options))?.type === 'folder'
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'conflict') return false
    throw error
  }
}

/** A folder takes a tar archive, anything else is the file. */
async function fromStdin(target: Inside, { options }: Copy): Promise<Moving> {
  const input = openInput()
  if (input === undefined) throw new SandboxError('invalid', '-: stdin is a terminal', { hint: 'glovebox cp - SANDBOX:PATH < FILE' })
  const isArchive = target.path.endsWith('/') || (await isFolderAt(target, options))
  return async (onProgress) => {
    const counter = new Counter(onProgress)
    try {
      const bytes = counter.count(input.chunks)
      if (isArchive) return counter.done(await target.files.unpack(target.path, bytes, options))
      await target.files.write(target.path, bytes, options)
      return counter.done(1)
    } finally {
      input.close()
    }
  }
}

/** A folder is a tar archive. */
async function toStdout(source: Inside, { options }: Copy): Promise<Moving> {
  const isFolder = await isFolderAt(source, options)
  if (isFolder && process.stdout.isTTY)
    throw new SandboxError('invalid', '-: a folder is a tar archive, and stdout is a terminal', { hint: 'glovebox cp SANDBOX:PATH - > FILE.tar' })
  return async () => {
    const counter = new Counter(() => undefined)
    const bytes = isFolder ? await source.files.pack(source.path, options) : (await source.files.read(source.path, options)).bytes
    for await (const piece of counter.count(bytes)) await writeTo(process.stdout, piece)
    return counter.done(1)
  }
}

async function between(source: Inside, target: Inside, { options }: Copy): Promise<Moving> {
  const isFolder = await isFolderAt(source, options)
  const to = await placeIn(target, { name: lastName(source.path), isContents: isFolder && meansContents(source.path), options })
  return async (onProgress) => {
    const counter = new Counter(onProgress)
    if (isFolder) return counter.done(await target.files.unpack(to, counter.count(await source.files.pack(source.path, options)), options))
    const { entry, bytes } = await source.files.read(source.path, options)
    await target.files.write(to, counter.count(bytes), { ...options, mode: entry.mode & 0o777 })
    return counter.done(1)
  }
}

class Counter {
  #bytes = 0
  readonly #onProgress: Parameters<Moving>[0]

  constructor(onProgress: Parameters<Moving>[0]) {
    this.#onProgress = onProgress
  }

  async *count(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const piece of pieces) {
      this.#bytes += piece.length
      this.#onProgress({ bytes: this.#bytes, totalBytes: undefined })
      yield piece
    }
  }

  done(entries: number): Transferred {
    return { entries, bytes: this.#bytes, skipped: [] }
  }
}
