/**
 * Puts what an archive tells into an empty folder of ours. The archive comes from a guest, which chose every name, link and mode in it: only files,
 * folders, and links that stay inside are made, and nothing is ever made through a link.
 */
import type { FileHandle } from 'node:fs/promises'
import { SandboxError } from '../contract/errors.js'
import { printable } from '../contract/printable.js'
import type { Received, Skipped } from '../contract/transfer.js'
import type { HostFolder } from './host-folder-handle.js'
import type { TarEntry } from './tar-reader.js'

/** So that as many folders can be held open. */
const mostDepth = 256
const mostNameBytes = 4095
const mostTold = 1000

export interface StagingBounds {
  readonly mostBytes: number
  readonly mostEntries: number
}

export class Staging implements AsyncDisposable {
  readonly #root: HostFolder
  readonly #bounds: StagingBounds
  readonly #skipped: Skipped[] = []
  /** The folders that the latest entry is in, below the root: most entries share them, or all but the last, with the one before. */
  #way: { readonly name: Buffer; readonly folder: HostFolder }[] = []
  #entries = 0
  #bytes = 0

  constructor(root: HostFolder, bounds: StagingBounds) {
    this.#root = root
    this.#bounds = bounds
  }

  get received(): Received {
    return { entries: this.#entries, bytes: this.#bytes, skipped: this.#skipped }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#leaveFrom(0)
  }

  async add(entry: TarEntry): Promise<void> {
    const parts = partsOf(entry.name)
    this.#entries += 1
    if (this.#entries > this.#bounds.mostEntries) {
      throw new SandboxError('full', `download: there are more than ${this.#bounds.mostEntries} entries; mostEntries may be raised`)
    }
    const name = parts.at(-1)
    // The folder itself.
    if (name === undefined) return
    try {
      await this.#make(entry, { folder: await this.#enter(parts.slice(0, -1)), name, parts })
    } catch (error) {
      throw entryError(entry, error)
    }
  }

  async #make(entry: TarEntry, place: Place): Promise<void> {
    switch (entry.type) {
      case 'folder':
        await this.#makeFolder(place, entry.mode)
        return
      case 'file':
        await this.#makeFile(entry, place)
        return
      case 'link':
        if (staysInside(entry.target, place.parts.length - 1)) await place.folder.createLink(place.name, entry.target)
        else this.#skip(place, `is a link to ${printable(entry.target.toString())}, which is not in the folder`)
        return
      case 'hard-link':
        await this.#makeHardLink(entry, place)
        return
      case 'device':
      case 'fifo':
        this.#skip(place, entry.type === 'device' ? 'is a device' : 'is a FIFO')
        return
      case 'gnu-name':
      case 'gnu-target':
      case 'pax':
      case 'pax-global':
        return
    }
  }

  #skip({ parts }: Place, why: string): void {
    if (this.#skipped.length < mostTold) this.#skipped.push({ path: Buffer.concat(withSlashes(parts)).toString(), why })
  }

  async #makeFolder({ folder, name }: Pick<Place, 'folder' | 'name'>, mode: number): Promise<void> {
    const there = await folder.look(name)
    // One that its owner may not enter could not be filled.
    if (!there) await folder.createFolder(name, (mode & 0o777) | 0o700)
    else if (!there.isDirectory()) throw twice
  }

  async #makeFile(entry: TarEntry, { folder, name }: Place): Promise<void> {
    const handle = await folder.createFile(name, entry.mode & 0o777)
    try {
      for await (const piece of entry.content) {
        this.#bytes += piece.length
        if (this.#bytes > this.#bounds.mostBytes) {
          throw new SandboxError('full', `download: there are more than ${this.#bounds.mostBytes} bytes; mostBytes may be raised`)
        }
        await writeAll(handle, piece)
      }
      const modified = entry.modifiedAtMs / 1000
      await handle.utimes(modified, modified)
    } finally {
      await handle.close()
    }
  }

  /** To a file that this archive brought before. */
  async #makeHardLink(entry: TarEntry, { folder, name }: Place): Promise<void> {
    const parts = partsOf(entry.target)
    const targetName = parts.at(-1)
    if (targetName === undefined) throw outside
    await using parent = await this.#open(parts.slice(0, -1))
    if (!(await parent.look(targetName))?.isFile()) throw new SandboxError('conflict', 'is a hard link to no file of the archive')
    await folder.createHardLink(name, { folder: parent, name: targetName })
  }

  async #enter(parts: readonly Buffer[]): Promise<HostFolder> {
    const differs = parts.findIndex((name, index) => this.#way[index]?.name.equals(name) !== true)
    await this.#leaveFrom(differs === -1 ? parts.length : differs)
    for (const name of parts.slice(this.#way.length)) this.#way.push({ name, folder: await this.#step(this.#way.at(-1)?.folder ?? this.#root, name) })
    return this.#way.at(-1)?.folder ?? this.#root
  }

  async #leaveFrom(index: number): Promise<void> {
    for (const { folder } of this.#way.splice(index).reverse()) await folder[Symbol.asyncDispose]()
  }

  /** A handle of its own. */
  async #open(parts: readonly Buffer[]): Promise<HostFolder> {
    let folder = await this.#root.enter(Buffer.from('.'))
    for (const name of parts) {
      await using outer = folder
      folder = await this.#step(outer, name)
    }
    return folder
  }

  /** Folders on the way that no entry told of are made. */
  async #step(outer: HostFolder, name: Buffer): Promise<HostFolder> {
    await this.#makeFolder({ folder: outer, name }, 0o755)
    return outer.enter(name)
  }
}

interface Place {
  readonly folder: HostFolder
  readonly name: Buffer
  /** The whole path below the root. */
  readonly parts: readonly Buffer[]
}

const outside = new SandboxError('conflict', 'would be outside the folder')
const twice = new SandboxError('conflict', 'is in the archive twice, as different things')

function entryError({ name }: TarEntry, error: unknown): unknown {
  const what = `download: ${printable(name.toString())} of the archive`
  if (error === outside || error === twice) return new SandboxError('conflict', `${what} ${(error as Error).message}`)
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ELOOP' || code === 'ENOTDIR') return new SandboxError('conflict', `${what} leads through something that is no folder`, { cause: error })
  if (code === 'EEXIST') return new SandboxError('conflict', `${what} is in it twice`, { cause: error })
  return error
}

function splitPath(path: Buffer): Buffer[] {
  const parts: Buffer[] = []
  for (let at = 0; at <= path.length; ) {
    const slash = path.indexOf(0x2f, at)
    const end = slash === -1 ? path.length : slash
    const part = path.subarray(at, end)
    if (part.length > 0 && !part.equals(Buffer.from('.'))) parts.push(part)
    at = end + 1
  }
  return parts
}

function partsOf(name: Buffer): Buffer[] {
  const parts = splitPath(name)
  const isInside = name.length > 0 && name[0] !== 0x2f && !name.includes(0) && !parts.some((part) => part.equals(Buffer.from('..')))
  if (!isInside) throw entryError({ name } as TarEntry, outside)
  if (name.length > mostNameBytes || parts.length > mostDepth) {
    throw new SandboxError(
      'conflict',
      `download: ${printable(name.toString())} of the archive is deeper than ${mostDepth} folders, or longer than ${mostNameBytes} bytes`,
    )
  }
  return parts
}

/** Up only at the beginning, and only through folders that are real ones: `..` behind a name could leave through another link. */
function staysInside(target: Buffer, depth: number): boolean {
  if (target.length === 0 || target[0] === 0x2f || target.includes(0)) return false
  const parts = splitPath(target)
  const isUp = (part: Buffer): boolean => part.equals(Buffer.from('..'))
  const names = parts.findIndex((part) => !isUp(part))
  const ups = names === -1 ? parts.length : names
  return ups <= depth && !parts.slice(ups).some(isUp)
}

function withSlashes(parts: readonly Buffer[]): Buffer[] {
  return parts.flatMap((part, index) => (index === 0 ? [part] : [Buffer.from('/'), part]))
}

export async function writeAll(handle: FileHandle, piece: Uint8Array): Promise<void> {
  for (let at = 0; at < piece.length; ) at += (await handle.write(piece, at)).bytesWritten
}
