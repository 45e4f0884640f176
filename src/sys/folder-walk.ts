/** The way to paths below a folder that is held open. Each folder on the way is entered by its name and never through a link; those of the last way stay open. */
import { pathBytes } from '../contract/path-text.js'
import { HostFolder } from './host-folder-handle.js'

export interface Step {
  readonly folder: HostFolder
  /** Of the last part of the path. */
  readonly name: Buffer
}

export class FolderWalk implements AsyncDisposable {
  readonly #root: HostFolder
  #way: { readonly name: string; readonly folder: HostFolder }[] = []

  private constructor(root: HostFolder) {
    this.#root = root
  }

  static async open(path: string): Promise<FolderWalk> {
    return new FolderWalk(await HostFolder.open(path))
  }

  get root(): HostFolder {
    return this.#root
  }

  /** Undefined when a folder on the way is missing or is no folder, be it a link to one. */
  async stepTo(path: string): Promise<Step | undefined> {
    const names = path.split('/')
    const last = names.pop() ?? ''
    if ([...names, last].some((name) => name === '' || name === '.' || name === '..' || name.includes('\0'))) return undefined
    const folder = await this.#enter(names)
    return folder && { folder, name: Buffer.from(pathBytes(last)) }
  }

  /** Forgets the way, so that the next is looked at anew. */
  async forget(): Promise<void> {
    await this.#leaveFrom(0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.forget()
    await this.#root[Symbol.asyncDispose]()
  }

  async #enter(names: readonly string[]): Promise<HostFolder | undefined> {
    const kept = names.findIndex((name, index) => this.#way[index]?.name !== name)
    await this.#leaveFrom(kept === -1 ? names.length : kept)
    for (const name of names.slice(this.#way.length)) {
      try {
        const above = this.#way.at(-1)?.folder ?? this.#root
        this.#way.push({ name, folder: await above.enter(Buffer.from(pathBytes(name))) })
      } catch (error) {
        if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
        throw error
      }
    }
    return this.#way.at(-1)?.folder ?? this.#root
  }

  async #leaveFrom(index: number): Promise<void> {
    for (const { folder } of this.#way.splice(index).reverse()) await folder[Symbol.asyncDispose]()
  }
}
