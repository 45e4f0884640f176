/**
 * A folder of the host's that an overlay was laid over, looked at from here: no place in the cell shows it any more. The paths that are asked about are a guest's
 * words, and others may write to the folder: each part is opened by its name in the one before, and no link is followed.
 */
import { createHash } from 'node:crypto'
import type { Stats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { Beneath, BeneathEntry } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import { pathText } from '../contract/path-text.js'
import { FolderWalk } from './folder-walk.js'

/** Which folder it was when the overlay was laid. */
export interface FolderIdentity {
  readonly dev: number
  readonly ino: number
}

export interface LowerFolderOrder {
  readonly path: string
  /** Undefined where nobody but the system's administrator can have moved it. */
  readonly identity: FolderIdentity | undefined
  /** Only what everyone may read was shown to the cell. */
  readonly isPublicOnly: boolean
  /** Whom an owner is in the cell. */
  ownerOf(status: { readonly uid: number; readonly gid: number }): { readonly uid: number; readonly gid: number }
}

export class LowerFolder implements Beneath {
  readonly #walk: FolderWalk
  readonly #order: LowerFolderOrder
  /** The folders of which it is known whether a program could see what is in them. */
  readonly #isOpen = new Map<string, boolean>()

  private constructor(walk: FolderWalk, order: LowerFolderOrder) {
    this.#walk = walk
    this.#order = order
  }

  static async open(order: LowerFolderOrder): Promise<LowerFolder> {
    const { path, identity } = order
    return guarded(path, async () => {
      const walk = await FolderWalk.open(path)
      const { dev, ino } = await walk.root.status()
      if (identity === undefined || (identity.dev === dev && identity.ino === ino)) return new LowerFolder(walk, order)
      await walk[Symbol.asyncDispose]()
      throw new SandboxError('conflict', `mounts: ${path} leads elsewhere now than when the sandbox was created`)
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#walk[Symbol.asyncDispose]()
  }

  look(path: string): Promise<BeneathEntry | undefined> {
    return guarded(this.#shown(path), () => this.#look(path))
  }

  names(path: string): Promise<readonly string[]> {
    return guarded(this.#shown(path), async () => {
      const step = await this.#walk.stepTo(textOf(path))
      if (!step) return []
      await using folder = await step.folder.enter(step.name)
      return (await folder.names()).map((name) => name.toString('latin1'))
    })
  }

  hash(path: string): Promise<string> {
    return guarded(this.#shown(path), async () => {
      const step = await this.#walk.stepTo(textOf(path))
      if (!step) throw new SandboxError('conflict', `${this.#shown(path)} went while it was read`)
      const handle = await step.folder.openFile(step.name)
      try {
        return await hashOf(handle)
      } finally {
        await handle.close()
      }
    })
  }

  async #look(path: string): Promise<BeneathEntry | undefined> {
    if (!(await this.#isReached(path))) return undefined
    const step = await this.#walk.stepTo(textOf(path))
    const status = step && (await step.folder.look(step.name))
    if (!step || !status || (this.#order.isPublicOnly && !isPublic(status))) return undefined
    const target = status.isSymbolicLink() ? (await step.folder.readLink(step.name)).toString('latin1') : ''
    return { type: typeOf(status), mode: status.mode & 0o7777, ...this.#order.ownerOf(status), size: status.size, target }
  }

  /** Whether every folder above it is one that the cell was shown. */
  async #isReached(path: string): Promise<boolean> {
    const above = path.slice(0, Math.max(0, path.lastIndexOf('/')))
    if (!this.#order.isPublicOnly || above === '') return true
    const known = this.#isOpen.get(above) ?? (await this.#look(above))?.type === 'folder'
    this.#isOpen.set(above, known)
    return known
  }

  #shown(path: string): string {
    return `${this.#order.path}/${Buffer.from(path, 'latin1').toString('utf8')}`
  }
}

/** As the launcher sees it. */
function isPublic(status: Stats): boolean {
  if (status.isSymbolicLink()) return true
  return status.isDirectory() ? (status.mode & 0o5) === 0o5 : status.isFile() && (status.mode & 0o4) !== 0
}

function typeOf(status: Stats): BeneathEntry['type'] {
  if (status.isFile()) return 'file'
  if (status.isDirectory()) return 'folder'
  if (status.isSymbolicLink()) return 'link'
  if (status.isFIFO()) return 'fifo'
  return status.isSocket() ? 'socket' : 'device'
}

async function hashOf(handle: FileHandle): Promise<string> {
  if (!(await handle.stat()).isFile()) throw new SandboxError('conflict', 'a file was replaced while it was read')
  const hash = createHash('sha256')
  for await (const piece of handle.createReadStream({ autoClose: false })) hash.update(piece as Buffer)
  return hash.digest('hex')
}

function textOf(path: string): string {
  return pathText(Buffer.from(path, 'latin1'))
}

async function guarded<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof SandboxError) throw error
    const { code = String(error) } = error as NodeJS.ErrnoException
    throw new SandboxError(code === 'EACCES' || code === 'EPERM' ? 'denied' : 'conflict', `what lies beneath cannot be read at ${path}: ${code}`, {
      cause: error,
    })
  }
}
