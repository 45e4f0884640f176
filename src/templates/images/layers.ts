/**
 * Layers of an image, or a plain archive of a root, into a tree. An archive is a stranger's: it is read once, within stated bounds; what cannot be in a template
 * (devices, FIFOs, set-id bits, names that nobody can type) is left out and told; what leads out, or contradicts itself, is refused with all of it.
 */
import { createHash } from 'node:crypto'
import { closeSync, openSync, statfsSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { SandboxError } from '../../contract/errors.js'
import type { LeftOut } from '../../contract/templates.js'
import { decompress } from '../../sys/decompress.js'
import { readTar, type TarEntry } from '../../sys/tar-reader.js'
import { entryPath, linkTarget, printed } from './entry-path.js'
import { type FileNode, type ImageTree, newFolder, refused, shown } from './image-tree.js'

export interface ImageLimits {
  /** Of all contents together, also of those that a later layer replaces. */
  readonly bytes: number
  /** Of all archives together, folders and links included. */
  readonly entries: number
}

export const imageLimits: ImageLimits = { bytes: 16 * 2 ** 30, entries: 1_000_000 }

export interface LayerOptions {
  readonly tree: ImageTree
  /** Private, and ours alone: contents lie in it. */
  readonly folder: string
  readonly limits?: ImageLimits
  readonly signal?: AbortSignal | undefined
  readonly onBytes?: (bytes: number) => void
}

const removalMark = '.wh.'
const opaqueMark = '.wh..wh..opq'
const setIdBits = 0o6000
const anyExecute = 0o111
const mostTold = 200
const checkedEveryBytes = 64 * 2 ** 20
const sparedBytes = 256 * 2 ** 20

export class LayerReader {
  readonly #options: LayerOptions
  readonly #limits: ImageLimits
  readonly #leftOut: LeftOut[] = []
  #leftOutCount = 0
  #bytes = 0
  #read = 0
  #contents = 0
  #unchecked = 0

  constructor(options: LayerOptions) {
    this.#options = options
    this.#limits = options.limits ?? imageLimits
  }

  /** The first of them, and how many there are. */
  get leftOut(): { readonly told: readonly LeftOut[]; readonly count: number } {
    return { told: this.#leftOut, count: this.#leftOutCount }
  }

  /** Compressed or not. Resolves to the SHA-256 of the archive as it is unpacked, in the form `sha256:…`. */
  async add(archive: AsyncIterable<Uint8Array>): Promise<string> {
    const { tree, signal } = this.#options
    const hash = createHash('sha256')
    for await (const entry of readTar(this.#counted(decompress(archive), hash), { gnu: true })) {
      signal?.throwIfAborted()
      this.#read += 1
      await this.#addEntry(entry)
      // Folders that no entry is about are made too.
      if (Math.max(this.#read, tree.entries) > this.#limits.entries) throw refused(`it has more than ${this.#limits.entries} entries`)
    }
    tree.nextLayer()
    return `sha256:${hash.digest('hex')}`
  }

  /** A file of ours. */
  newFile(text: string): FileNode {
    const content = this.#newContent()
    const file = openSync(content, 'wx', 0o600)
    try {
      writeSync(file, text)
    } finally {
      closeSync(file)
    }
    return { kind: 'file', content, size: Buffer.byteLength(text), isExecutable: false }
  }

  tell(path: string, why: string): void {
    this.#leftOutCount += 1
    if (this.#leftOut.length < mostTold) this.#leftOut.push({ path: printed(path), why })
  }

  async #addEntry(entry: TarEntry): Promise<void> {
    const { tree } = this.#options
    const found = entryPath(entry.name)
    if ('unusable' in found) {
      this.tell(`/${entry.name.toString('utf8')}`, found.unusable)
      return
    }
    const { path } = found
    const name = path.at(-1)
    if (name === undefined) return
    if (name.startsWith(removalMark)) {
      this.#removal(path.slice(0, -1), name)
      return
    }
    switch (entry.type) {
      case 'folder':
        tree.put(path, newFolder())
        return
      case 'file':
        tree.put(path, await this.#content(entry, path))
        return
      case 'link':
        this.#link(path, entry.target)
        return
      case 'hard-link':
        this.#hardLink(path, entry.target)
        return
      case 'device':
      case 'fifo':
        this.tell(shown(path), entry.type === 'device' ? 'is a device' : 'is a FIFO')
        return
      case 'pax':
      case 'pax-global':
      case 'gnu-name':
      case 'gnu-target':
        throw new SandboxError('internal', 'a header was taken for an entry')
    }
  }

  #removal(folder: readonly string[], mark: string): void {
    const { tree } = this.#options
    if (mark === opaqueMark) {
      tree.hideAll(folder)
      return
    }
    const name = mark.slice(removalMark.length)
    if (name === '' || name === '.' || name === '..') throw refused(`${shown([...folder, mark])} removes what has no name`)
    // What other tools note down for themselves.
    if (name.startsWith(removalMark)) {
      this.tell(shown([...folder, mark]), 'is a note of the tool that made the layer')
      return
    }
    tree.hide([...folder, name])
  }

  #link(path: readonly string[], target: Buffer): void {
    const text = linkTarget(target)
    if (text === undefined) {
      this.tell(shown(path), 'leads to what nobody can name')
      return
    }
    this.#options.tree.put(path, { kind: 'link', target: text })
  }

  /** To a file that is there by now, of this layer or of an earlier one; which it is does not change when that name goes. */
  #hardLink(path: readonly string[], target: Buffer): void {
    const { tree } = this.#options
    const found = entryPath(target)
    const node = 'path' in found ? (tree.look(found.path) ?? tree.find(found.path)) : undefined
    if (node === undefined || node.kind === 'folder')
      throw refused(`${shown(path)} is another name of ${printed(target.toString('utf8'))}, which is ${node === undefined ? 'not in it' : 'a folder'}`)
    tree.put(path, node)
  }

  async #content(entry: TarEntry, path: readonly string[]): Promise<FileNode> {
    if ((entry.mode & setIdBits) !== 0) this.tell(shown(path), 'its set-id bit is taken away')
    if (this.#bytes + entry.size > this.#limits.bytes) throw refused(`its files have more than ${this.#limits.bytes} bytes`)
    this.#bytes += entry.size
    this.#checkRoom(entry.size)
    const content = this.#newContent()
    const file = openSync(content, 'wx', 0o600)
    try {
      for await (const piece of entry.content) {
        this.#options.signal?.throwIfAborted()
        for (let at = 0; at < piece.length; ) at += writeSync(file, piece, at)
      }
    } catch (error) {
      unlinkSync(content)
      throw error
    } finally {
      closeSync(file)
    }
    return { kind: 'file', content, size: entry.size, isExecutable: (entry.mode & anyExecute) !== 0 }
  }

  /** An archive may not fill the disk of everybody else, be it for the moment until it is refused. */
  #checkRoom(size: number): void {
    this.#unchecked += size
    if (this.#unchecked < checkedEveryBytes && this.#contents > 0) return
    this.#unchecked = 0
    const { bavail, bsize } = statfsSync(this.#options.folder)
    if (bavail * bsize - size >= sparedBytes) return
    throw new SandboxError('full', `${this.#options.folder} has no room for the image: ${sparedBytes / 2 ** 20} MiB are left free for others`, {
      hint: `df -h ${this.#options.folder}`,
    })
  }

  #newContent(): string {
    this.#contents += 1
    return join(this.#options.folder, `${this.#contents}`)
  }

  /** What is between entries counts too: zeros pack very well. */
  async *#counted(archive: AsyncIterable<Uint8Array>, hash: ReturnType<typeof createHash>): AsyncGenerator<Uint8Array, void, undefined> {
    let bytes = 0
    const most = this.#limits.bytes + this.#limits.entries * 4096
    for await (const piece of archive) {
      bytes += piece.length
      if (bytes > most) throw refused(`a layer of it has more than ${most} bytes`)
      hash.update(piece)
      this.#options.onBytes?.(piece.length)
      yield piece
    }
  }
}
