/** A template's files by the paths that a cell has for them. What leads out of the template leads nowhere, as it does in the cell. */
import { lstatSync, readlinkSync, type Stats } from 'node:fs'
import { posix } from 'node:path'
import type { TemplateRoot } from '../contract/driver.js'

export interface ViewedFile {
  /** As the cell sees it, without links. */
  readonly path: string
  /** Where the host has it. */
  readonly source: string
  readonly status: Stats
}

const mostLinks = 40

export class TemplateView {
  readonly #root: TemplateRoot
  readonly #nearestFirst: TemplateRoot['binds']
  readonly #links: ReadonlyMap<string, string>

  constructor(root: TemplateRoot) {
    this.#root = root
    // Of two at one place the later covers the earlier.
    this.#nearestFirst = [...root.binds].reverse().sort((one, other) => other.target.length - one.target.length)
    this.#links = new Map(root.symlinks.map(({ path, target }) => [path, target]))
  }

  /** What tells it from others that show the same folders; empty where it is what the machine has. */
  get identity(): string {
    return this.#root.id ?? ''
  }

  /** The outermost folders that the template shows, by the cell's paths. */
  get tops(): string[] {
    const targets = this.#root.binds.map(({ target }) => target)
    return targets.filter((target) => !targets.some((other) => target.startsWith(`${other}/`)))
  }

  /** Where the host has a path of the cell's whose links are all resolved; undefined for what the template does not show. */
  sourceOf(path: string): string | undefined {
    for (const { source, target } of this.#nearestFirst) {
      if (path.startsWith(target) && (path.length === target.length || path[target.length] === '/')) return source + path.slice(target.length)
    }
    return undefined
  }

  /** Follows every link the way the cell's kernel would; undefined where that ends at nothing. */
  find(path: string): ViewedFile | undefined {
    let names = path.split('/').filter((name) => name !== '')
    let at = ''
    for (let links = 0; names.length > 0; ) {
      const [name = '', ...rest] = names
      names = rest
      if (name === '.') continue
      if (name === '..') {
        at = posix.dirname(at || '/').replace(/^\/$/, '')
        continue
      }
      const target = this.#linkAt(`${at}/${name}`)
      if (target === undefined) {
        at = `${at}/${name}`
        continue
      }
      links += 1
      if (links > mostLinks) return undefined
      if (target.startsWith('/')) at = ''
      names = [...target.split('/').filter((part) => part !== ''), ...names]
    }
    return this.fileAt(at)
  }

  /** What is at a path without links. */
  fileAt(path: string): ViewedFile | undefined {
    const source = this.sourceOf(path)
    const status = source === undefined ? undefined : statusOf(source)
    return source === undefined || status === undefined ? undefined : { path, source, status }
  }

  #linkAt(path: string): string | undefined {
    const own = this.#links.get(path)
    if (own !== undefined) return own
    const source = this.sourceOf(path)
    if (source === undefined || statusOf(source)?.isSymbolicLink() !== true) return undefined
    return readlinkSync(source)
  }
}

function statusOf(path: string): Stats | undefined {
  try {
    return lstatSync(path)
  } catch {
    return undefined
  }
}
