/** Which of a sandbox's files a snapshot holds, and under which names. */
import type { Beneath, Cell, CellLayer, GivenEntry } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { ManifestEntry } from '../contract/snapshot-store.js'
import type { Mount } from '../contract/spec.js'

/** As much of a cell as has to be known. */
export type LayeredCell = Pick<Cell, 'layers' | 'workdir' | 'beneath'>

export interface KeptLayer {
  /** Where the cell has it. */
  readonly path: string
  /** What its entries begin with, as bytes (Latin-1) without a slash in front: the same in every cell. Empty of the root. */
  readonly prefix: string
  /** Below it, as bytes: where something else is mounted, and the folders on the way there, which were made for that. */
  readonly mounts: readonly string[]
  /** What was there before any program, paths and targets as bytes. */
  readonly given?: readonly GivenEntry[]
  /** Of an overlay. */
  readonly over?: { readonly index: number; readonly open: () => Promise<Beneath> }
}

/** A driver may have its workspace anywhere; a snapshot has it here. */
const workspace = '/workspace'

/** Everywhere that the sandbox's programs can write and that goes with it, but for shared memory, which is of no use to programs that are started anew. */
export function keptLayers(cell: LayeredCell, mounts: readonly Mount[]): KeptLayer[] {
  const { layers, workdir } = cell
  const others = [...mounts.map(({ target }) => target), ...layers.flatMap((layer) => [layer.path, ...(layer.kind === 'folder' ? (layer.mounted ?? []) : [])])]
  return layers
    .filter(({ path }) => !path.startsWith('/dev/'))
    .map((layer) => {
      const { path } = layer
      const prefix = bytesOf(path === workdir ? workspace : path).slice(1)
      return { path, prefix, mounts: mountsBelow(path, others), ...originOf(layer, cell) }
    })
    .sort((left, right) => (left.prefix < right.prefix ? -1 : 1))
}

function originOf(layer: CellLayer, cell: LayeredCell): Pick<KeptLayer, 'given' | 'over'> {
  if (layer.kind === 'folder') {
    return layer.given ? { given: layer.given.map((each) => ({ ...each, path: bytesOf(each.path), target: bytesOf(each.target) })) } : {}
  }
  const { path, index } = layer
  const { beneath } = cell
  if (!beneath) throw new SandboxError('unsupported', `nobody can tell what lies beneath the overlay on ${path}: its marks can be read from Linux 6.6 on`)
  return { over: { index, open: () => beneath(index) } }
}

function mountsBelow(folder: string, others: readonly string[]): string[] {
  const start = folder === '/' ? folder : `${folder}/`
  return [...new Set(others.flatMap((target) => (target !== '/' && target.startsWith(start) ? [bytesOf(target.slice(start.length))] : [])))]
}

/** Whether an entry, by its path below the layer, is the sandbox's own. */
export function isOwn(path: string, { mounts }: KeptLayer): boolean {
  return path !== '' && !mounts.some((mount) => path === mount || path.startsWith(`${mount}/`) || mount.startsWith(`${path}/`))
}

/** What an entry is called in a snapshot, by its path below the layer. */
export function pathInSnapshot(path: string, { prefix }: KeptLayer): string {
  return prefix === '' ? path : `${prefix}/${path}`
}

/** The other way round. */
export function pathBelow(path: string, { prefix }: KeptLayer): string {
  return prefix === '' ? path : path.slice(prefix.length + 1)
}

/** The layer that an entry of a snapshot belongs to: the innermost. */
export function layerOf(path: string, layers: readonly KeptLayer[]): KeptLayer | undefined {
  const holding = layers.filter(({ prefix }) => prefix === '' || path.startsWith(`${prefix}/`))
  return holding.sort((left, right) => right.prefix.length - left.prefix.length)[0]
}

/** Where the cell has an entry of a snapshot. */
export function pathInCell({ path }: Pick<ManifestEntry, 'path'>, layers: readonly KeptLayer[]): Uint8Array {
  const layer = layerOf(path, layers)
  const top = layer && layer.path !== '/' ? bytesOf(layer.path) : ''
  return Buffer.from(layer ? `${top}/${pathBelow(path, layer)}` : `/${path}`, 'latin1')
}

function bytesOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}
