/**
 * The root of an image, put together in memory before anything of it has a name on the disk. An archive names paths, links and removals; here they are only entries of
 * maps, so that no path of an archive is ever handed to the operating system, and no link of one can lead anywhere: it is followed in the same maps, or not at all.
 * Contents lie in numbered files of a private folder until the whole is known (`materialise`).
 */
import { SandboxError } from '../../contract/errors.js'

export interface FileNode {
  readonly kind: 'file'
  /** Where its content lies meanwhile. */
  readonly content: string
  readonly size: number
  readonly isExecutable: boolean
  /** It belongs to a template that is kept, and is copied from there. */
  readonly isBorrowed?: true
}

export interface LinkNode {
  readonly kind: 'link'
  readonly target: string
}

export interface FolderNode {
  readonly kind: 'folder'
  readonly entries: Map<string, TreeEntry>
}

export type TreeNode = FileNode | LinkNode | FolderNode

interface TreeEntry {
  readonly node: TreeNode
  /** The layer that wrote it last, from 0. */
  readonly layer: number
}

const mostLinks = 40
/** Through links a path can lie deeper than any archive can say; the file system has its own bound. */
const mostDepth = 256
const mostPathBytes = 3500

export class ImageTree {
  readonly root: FolderNode = newFolder()
  #layer = 0
  #entries = 0

  /** How many names there are in it. */
  get entries(): number {
    return this.#entries
  }

  /** What comes now lies over what came before. */
  nextLayer(): void {
    this.#layer += 1
  }

  /** The folders above are made. What was there is gone, but that a folder which is told again keeps what is in it. */
  put(path: readonly string[], node: TreeNode): void {
    const name = path.at(-1)
    if (name === undefined) return
    const { entries } = this.#folderAt(path.slice(0, -1))
    const there = entries.get(name)
    const kept = node.kind === 'folder' && there?.node.kind === 'folder' ? there.node : node
    if (there && kept !== there.node) this.#count(there.node, -1)
    if (kept !== there?.node) this.#count(kept, 1)
    entries.set(name, { node: kept, layer: this.#layer })
  }

  /** Removes what earlier layers have there. What this layer wrote itself stays, whichever came first. */
  hide(path: readonly string[]): void {
    const folder = this.find(path.slice(0, -1))
    const name = path.at(-1)
    if (folder?.kind === 'folder' && name !== undefined) this.#hideEntry(folder, name)
  }

  /** The same of all that is in a folder. */
  hideAll(path: readonly string[]): void {
    const folder = this.find(path)
    if (folder?.kind === 'folder') for (const name of [...folder.entries.keys()]) this.#hideEntry(folder, name)
  }

  /** Whoever wrote it. Through no link, and quiet when it is not there. */
  remove(path: readonly string[]): void {
    const folder = this.#plain(path.slice(0, -1))
    const name = path.at(-1) ?? ''
    const there = folder?.kind === 'folder' ? folder.entries.get(name) : undefined
    if (folder?.kind !== 'folder' || there === undefined) return
    this.#count(there.node, -1)
    folder.entries.delete(name)
  }

  /** Every link is followed as the kernel would in a cell with this root; undefined where that ends at nothing. */
  find(path: readonly string[]): TreeNode | undefined {
    return this.#plain(this.#resolved(path))
  }

  /** Through no link. */
  look(path: readonly string[]): TreeNode | undefined {
    return this.#plain(path)
  }

  /** In the order in which names were first told, folders before what is in them. */
  *walk(): Generator<readonly [path: readonly string[], node: TreeNode], void, undefined> {
    yield* walkFolder([], this.root)
  }

  #hideEntry(folder: FolderNode, name: string): void {
    const there = folder.entries.get(name)
    if (there === undefined) return
    const { node, layer } = there
    if (node.kind === 'folder') for (const inner of [...node.entries.keys()]) this.#hideEntry(node, inner)
    if (layer === this.#layer || (node.kind === 'folder' && node.entries.size > 0)) return
    this.#count(node, -1)
    folder.entries.delete(name)
  }

  /** The folder at a path whose links are followed; made where there is nothing. */
  #folderAt(path: readonly string[]): FolderNode {
    let folder = this.root
    const resolved = this.#resolved(path)
    if (Buffer.byteLength(resolved.join('/')) > mostPathBytes) throw refused(`${shown(path)} lies too deep`)
    for (const name of resolved) {
      const there = folder.entries.get(name)
      if (there?.node.kind === 'folder') {
        folder = there.node
        continue
      }
      if (there !== undefined) throw refused(`${shown(path)} lies below what is no folder`)
      const made = newFolder()
      folder.entries.set(name, { node: made, layer: this.#layer })
      this.#entries += 1
      folder = made
    }
    return folder
  }

  #plain(path: readonly string[]): TreeNode | undefined {
    let node: TreeNode | undefined = this.root
    for (const name of path) node = node?.kind === 'folder' ? node.entries.get(name)?.node : undefined
    return node
  }

  /** Without links. What lies beyond the last that is there stays as it is. */
  #resolved(path: readonly string[]): string[] {
    const done: { readonly name: string; readonly node: TreeNode | undefined }[] = []
    const ahead = [...path].reverse()
    for (let links = 0, name = ahead.pop(); name !== undefined; name = ahead.pop()) {
      if (name === '' || name === '.') continue
      if (name === '..') {
        done.pop()
        continue
      }
      const above = done.length === 0 ? this.root : done.at(-1)?.node
      const node = above?.kind === 'folder' ? above.entries.get(name)?.node : undefined
      if (node?.kind === 'link') {
        links += 1
        if (links > mostLinks) throw refused(`${shown(path)} leads through too many links`)
        if (node.target.startsWith('/')) done.length = 0
        ahead.push(...node.target.split('/').reverse())
      } else done.push({ name, node })
      if (done.length > mostDepth) throw refused(`${shown(path)} lies too deep`)
    }
    return done.map(({ name }) => name)
  }

  #count(node: TreeNode, sign: 1 | -1): void {
    this.#entries += sign
    if (node.kind === 'folder') for (const { node: inner } of node.entries.values()) this.#count(inner, sign)
  }
}

export function newFolder(): FolderNode {
  return { kind: 'folder', entries: new Map() }
}

export function refused(message: string): SandboxError {
  return new SandboxError('invalid', `the image is refused: ${message}`)
}

/** A path of an archive in a line of ours. */
export function shown(path: readonly string[]): string {
  return JSON.stringify(`/${path.join('/')}`.slice(0, 300)).slice(1, -1)
}

function* walkFolder(path: readonly string[], folder: FolderNode): Generator<readonly [readonly string[], TreeNode], void, undefined> {
  for (const [name, { node }] of folder.entries) {
    const inner = [...path, name]
    yield [inner, node]
    if (node.kind === 'folder') yield* walkFolder(inner, node)
  }
}
