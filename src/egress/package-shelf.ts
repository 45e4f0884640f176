/**
 * Files of packages that were fetched once, by what they hold: a folder for each place that they came from, in it a file named by its hash. A file is written as a
 * draft and gets its name when it was found to have that hash, so there is no half one; whoever takes it down hashes it again. Nothing of a guest's is ever written here.
 */
import { createHash, randomUUID } from 'node:crypto'
import { constants, lstatSync, mkdirSync } from 'node:fs'
import { type FileHandle, open, readdir, rename, rm, rmdir, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { currentOwner, ownerName } from '../sys/owner.js'
import type { PackageHash } from './package-index.js'

export interface ShelfOptions {
  readonly folder: () => string
  /** All files together; those that nobody asked for longest go first. */
  readonly mostBytes?: number
}

export interface Kept {
  readonly handle: FileHandle
  readonly size: number
}

export interface PackageDraft {
  write(chunk: Uint8Array): Promise<void>
  /** It has the hash that it was promised to have. */
  keep(): Promise<void>
  drop(): Promise<void>
}

export interface ShelfSize {
  readonly files: number
  readonly bytes: number
}

const gibibyte = 2 ** 30
/** One larger is not kept. */
export const mostFileBytes = gibibyte / 4
/** What the smallest counts as: however small, each is a file of the host's and has to be looked at. */
const leastCountedBytes = 64 * 1024
const drafts = 'drafts'
const draftMs = 3_600_000

export class PackageShelf {
  readonly #options: ShelfOptions
  #folder: string | undefined
  /** What there is, as far as this process knows; undefined: it has not looked. */
  #countedBytes: number | undefined
  #draftBytes = 0
  #pruning: Promise<void> | undefined

  constructor(options: ShelfOptions) {
    this.#options = options
  }

  /** Undefined when there is none, and when it is not what its name says: then it is gone. */
  async find(origin: string, hash: PackageHash, signal?: AbortSignal): Promise<Kept | undefined> {
    const path = this.#pathOf(origin, hash)
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => undefined)
    if (!handle) return undefined
    try {
      const { size } = await handle.stat()
      if (await hasHash(handle, hash, signal)) {
        await utimes(path, new Date(), new Date()).catch(() => undefined)
        return { handle, size }
      }
      if (!signal?.aborted) await rm(path, { force: true })
    } catch {
      // As if it were not there.
    }
    await handle.close()
    return undefined
  }

  /** Undefined where nothing can be kept. */
  async begin(origin: string, hash: PackageHash): Promise<PackageDraft | undefined> {
    try {
      const path = this.#pathOf(origin, hash)
      for (const folder of [this.#place(drafts), this.#place(originName(origin))]) mkdirSync(folder, { recursive: true, mode: 0o700 })
      const draft = join(this.#place(drafts), `${ownerName(currentOwner())}-${randomUUID()}`)
      const handle = await open(draft, 'wx', 0o400)
      return this.#draftOf(handle, { draft, path })
    } catch {
      return undefined
    }
  }

  async size(): Promise<ShelfSize> {
    const files = await this.#files()
    return { files: files.length, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) }
  }

  /** Those that were asked for longest ago, until no more than this is left; and what nobody writes any more. */
  async prune(mostBytes = this.#mostBytes): Promise<void> {
    const files = (await this.#files()).sort((one, other) => one.usedMs - other.usedMs)
    let bytes = files.reduce((sum, file) => sum + countedBytes(file.bytes), 0)
    for (const file of files) {
      if (bytes <= mostBytes) break
      await rm(file.path, { force: true })
      bytes -= countedBytes(file.bytes)
    }
    this.#countedBytes = bytes
    // Only those that are empty go.
    for (const name of await readdir(this.#place('')).catch(() => [])) if (name !== drafts) await rmdir(this.#place(name)).catch(() => undefined)
    for (const draft of await this.#filesIn(drafts)) if (draft.usedMs < Date.now() - draftMs || mostBytes === 0) await rm(draft.path, { force: true })
  }

  #draftOf(handle: FileHandle, { draft, path }: { readonly draft: string; readonly path: string }): PackageDraft {
    let bytes = 0
    const settle = (): void => {
      this.#draftBytes -= bytes
      bytes = 0
    }
    const drop = async (): Promise<void> => {
      settle()
      await handle.close().catch(() => undefined)
      await rm(draft, { force: true })
    }
    return {
      write: async (chunk) => {
        // All that is being written at once, of whatever length it will be.
        if (this.#draftBytes + chunk.length > this.#mostBytes / 2) throw new Error('too much is being written')
        this.#draftBytes += chunk.length
        bytes += chunk.length
        await handle.writeFile(chunk)
      },
      keep: async () => {
        try {
          await handle.datasync()
          await rename(draft, path)
          await handle.close()
          const size = bytes
          settle()
          await this.#count(size)
        } catch {
          await drop()
        }
      },
      drop,
    }
  }

  /** To look at everything takes long where there is much: only where there may be too much, and one at a time. */
  async #count(bytes: number): Promise<void> {
    if (this.#countedBytes !== undefined) this.#countedBytes += countedBytes(bytes)
    if (this.#countedBytes !== undefined && this.#countedBytes <= this.#mostBytes) return
    this.#pruning ??= this.prune().finally(() => {
      this.#pruning = undefined
    })
    await this.#pruning
  }

  get #mostBytes(): number {
    return this.#options.mostBytes ?? gibibyte
  }

  #pathOf(origin: string, { algorithm, hex }: PackageHash): string {
    return join(this.#place(originName(origin)), `${algorithm}-${hex}`)
  }

  /** Throws where others could write: what they put there would be looked at, if only to be refused. */
  #place(name: string): string {
    if (this.#folder === undefined) {
      const folder = this.#options.folder()
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      const { uid, mode } = lstatSync(folder)
      if (uid !== process.geteuid?.() || (mode & 0o077) !== 0 || !lstatSync(folder).isDirectory()) throw new Error(`${folder}: is not for its owner alone`)
      this.#folder = folder
    }
    return join(this.#folder, name)
  }

  async #files(): Promise<File[]> {
    const names = await readdir(this.#place('')).catch(() => [])
    return (await Promise.all(names.filter((name) => name !== drafts).map((name) => this.#filesIn(name)))).flat()
  }

  async #filesIn(name: string): Promise<File[]> {
    const folder = this.#place(name)
    const files: File[] = []
    for (const file of await readdir(folder).catch(() => [])) {
      const path = join(folder, file)
      const status = await stat(path).catch(() => undefined)
      if (status) files.push({ path, bytes: status.size, usedMs: status.mtimeMs })
    }
    return files
  }
}

interface File {
  readonly path: string
  readonly bytes: number
  readonly usedMs: number
}

function countedBytes(bytes: number): number {
  return Math.max(bytes, leastCountedBytes)
}

function originName(origin: string): string {
  return `at-${createHash('sha256').update(origin).digest('hex').slice(0, 32)}`
}

async function hasHash(handle: FileHandle, { algorithm, hex }: PackageHash, signal?: AbortSignal): Promise<boolean> {
  const hash = createHash(algorithm)
  const buffer = Buffer.allocUnsafe(2 ** 18)
  for (let place = 0; ; ) {
    if (signal?.aborted) return false
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, place)
    if (bytesRead === 0) break
    hash.update(buffer.subarray(0, bytesRead))
    place += bytesRead
  }
  return hash.digest('hex') === hex
}
