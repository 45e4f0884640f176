/**
 * A folder of the host's, held open. What is in it is named through the descriptor (`/proc/self/fd/N/name`), so that nobody who swaps a folder above it
 * for a link, be it a guest that a folder is shared with, can lead us elsewhere; and no name is followed when it is a link.
 */
import { constants, lstatSync, openSync, renameSync, type Stats } from 'node:fs'
import { chmod, type FileHandle, lchown, link, lstat, mkdir, open, readdir, readlink, rename, rmdir, symlink, unlink } from 'node:fs/promises'
import { syncNames } from './durable.js'

const folderFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY
const createFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/** Node does not name it; the same on every architecture that there are cells for. */
const openPath = 0o10000000

/** A new folder takes it from the one that it is in. */
const setGroupId = 0o2000

export class HostFolder implements AsyncDisposable {
  readonly #handle: FileHandle

  private constructor(handle: FileHandle) {
    this.#handle = handle
  }

  /** The path itself may be or have links: whoever gives it knows where it leads. */
  static async open(path: string | Buffer): Promise<HostFolder> {
    return new HostFolder(await open(path, constants.O_RDONLY | constants.O_DIRECTORY))
  }

  /** Where every path begins. */
  static async root(): Promise<HostFolder> {
    return new HostFolder(await open('/', openPath | constants.O_DIRECTORY))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close()
  }

  get descriptor(): number {
    return this.#handle.fd
  }

  /** Undefined when there is nothing of this name. */
  async look(name: Buffer): Promise<Stats | undefined> {
    try {
      return await lstat(this.#path(name))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }

  /** The same at once: for very many of them, since each wait costs more than looking. */
  lookSync(name: Buffer): Stats | undefined {
    return lstatSync(this.#path(name), { throwIfNoEntry: false })
  }

  /** Rejects with ELOOP or ENOTDIR for what is no folder. */
  async enter(name: Buffer): Promise<HostFolder> {
    return new HostFolder(await open(this.#path(name), folderFlags))
  }

  /** The same for a folder that is only on the way: it need not be readable. */
  async pass(name: Buffer): Promise<HostFolder> {
    return new HostFolder(await open(this.#path(name), openPath | constants.O_DIRECTORY | constants.O_NOFOLLOW))
  }

  async names(): Promise<Buffer[]> {
    const names = await readdir(`/proc/self/fd/${this.#handle.fd}`, { encoding: 'buffer' })
    return names.sort((one, other) => one.compare(other))
  }

  /** Never waits for the other end of a FIFO, never follows a link. */
  openFile(name: Buffer): Promise<FileHandle> {
    return open(this.#path(name), readFlags)
  }

  /** The same at once; the descriptor is the caller's to close. */
  openFileSync(name: Buffer): number {
    return openSync(this.#path(name), readFlags)
  }

  createFile(name: Buffer, mode: number): Promise<FileHandle> {
    return open(this.#path(name), createFlags, mode)
  }

  createFileSync(name: Buffer, mode: number): number {
    return openSync(this.#path(name), createFlags, mode)
  }

  async createFolder(name: Buffer, mode: number): Promise<void> {
    await mkdir(this.#path(name), { mode })
  }

  /** Makes a folder and holds it. Throws when somebody who may write here put another in its place before it was held. */
  async createHeld(name: Buffer): Promise<HostFolder> {
    await this.createFolder(name, 0o700)
    const folder = await this.enter(name)
    const { uid, mode } = await folder.status()
    if (uid === process.geteuid?.() && (mode & 0o7777 & ~setGroupId) === 0o700 && (await folder.names()).length === 0) return folder
    await folder[Symbol.asyncDispose]()
    throw Object.assign(new Error('EEXIST: is not the folder that was made'), { code: 'EEXIST', syscall: 'mkdir', path: this.#path(name).toString() })
  }

  async createLink(name: Buffer, target: Buffer): Promise<void> {
    await symlink(target, this.#path(name))
  }

  async readLink(name: Buffer): Promise<Buffer> {
    return readlink(this.#path(name), { encoding: 'buffer' })
  }

  async createHardLink(name: Buffer, of: { readonly folder: HostFolder; readonly name: Buffer }): Promise<void> {
    await link(of.folder.#path(of.name), this.#path(name))
  }

  /** Replaces what is there, if it is no folder; a link itself, not what it leads to. */
  async moveTo(name: Buffer, to: { readonly folder: HostFolder; readonly name: Buffer }): Promise<void> {
    await rename(this.#path(name), to.folder.#path(to.name))
  }

  moveToSync(name: Buffer, to: { readonly folder: HostFolder; readonly name: Buffer }): void {
    renameSync(this.#path(name), to.folder.#path(to.name))
  }

  /** Resolves when the names in it would be there after a loss of power, too. */
  async sync(): Promise<void> {
    await syncNames(this.#handle.fd)
  }

  /** Of the folder itself. */
  status(): Promise<Stats> {
    return this.#handle.stat()
  }

  /** Refuses a link rather than following it. */
  async setMode(name: Buffer, mode: number): Promise<void> {
    await this.#held(name, (path) => chmod(path, mode))
  }

  /** Of the folder itself. */
  async setOwnMode(mode: number): Promise<void> {
    await this.#handle.chmod(mode)
  }

  async give(name: Buffer, { uid, gid }: { readonly uid: number; readonly gid: number }): Promise<void> {
    await lchown(this.#path(name), uid, gid)
  }

  async unlink(name: Buffer): Promise<void> {
    await unlink(this.#path(name))
  }

  async removeFolder(name: Buffer): Promise<void> {
    await rmdir(this.#path(name))
  }

  /** The very thing that has the name, whatever has it later. */
  async #held(name: Buffer, act: (path: string) => Promise<void>): Promise<void> {
    const handle = await open(this.#path(name), openPath | constants.O_NOFOLLOW)
    try {
      if ((await handle.stat()).isSymbolicLink()) throw Object.assign(new Error('ELOOP: is a link'), { code: 'ELOOP', syscall: 'open' })
      await act(`/proc/self/fd/${handle.fd}`)
    } finally {
      await handle.close()
    }
  }

  #path(name: Buffer): Buffer {
    return Buffer.concat([Buffer.from(`/proc/self/fd/${this.#handle.fd}/`), name])
  }
}
