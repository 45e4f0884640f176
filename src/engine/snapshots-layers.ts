/** Which of a sandbox's files a snapshot holds, and under which names. */
import type { Cell } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { ManifestEntry } from '../contract/snapshot-store.js'
import type { Mount } from '../contract/spec.js'

/** As much of a cell as has to be known. */
export type LayeredCell = Pick<Cell, 'layers' | 'workdir'>

export interface KeptLayer {
  /** Where the cell has it. */
  readonly path: string
  /** What its entries begin with, as bytes (Latin-1) without a slash in front: the same in every cell. */
  readonly prefix: string
  /** Below it, as bytes: where folders of the host are mounted, and the folders on the way there, which were made for that. */
  readonly mounts: readonly string[]
}

/** A driver may have its workspace anywhere; a snapshot has it here. */
const workspace = '/workspace'

/**
 * Every folder that the sandbox's programs can write and that goes with it, but for shared memory, which is of no use to programs that are started anew. Throws
 * SandboxError('unsupported') where more than such folders can be written.
 */
export function keptLayers({ layers, workdir }: LayeredCell, mounts: readonly Mount[]): KeptLayer[] {
  const overlay = layers.find(({ kind }) => kind === 'overlay')
  if (overlay) {
    throw new SandboxError('unsupported', `snapshots hold whole folders, and ${overlay.path} is an overlay, of which only the changes are the sandbox's own`, {
      hint: "use root: 'readonly' and mounts with mode 'ro' or 'rw'",
    })
  }
  return layers
    .filter(({ path }) => !path.startsWith('/dev/'))
    .map(({ path }) => ({ path, prefix: bytesOf(path === workdir ? workspace : path).slice(1), mounts: mountsBelow(path, mounts) }))
    .sort((left, right) => (left.prefix < right.prefix ? -1 : 1))
}

function mountsBelow(folder: string, mounts: readonly Mount[]): string[] {
  return mounts.flatMap(({ target }) => (target.startsWith(`${folder}/`) ? [bytesOf(target.slice(folder.length + 1))] : []))
}

/** Whether an entry, by its path below the layer, is the sandbox's own. */
export function isOwn(path: string, { mounts }: KeptLayer): boolean {
  return path !== '' && !mounts.some((mount) => path === mount || path.startsWith(`${mount}/`) || mount.startsWith(`${path}/`))
}

/** The layer that an entry of a snapshot belongs to. */
export function layerOf(path: string, layers: readonly KeptLayer[]): KeptLayer | undefined {
  return layers.find(({ prefix }) => path.startsWith(`${prefix}/`))
}

/** Where the cell has an entry of a snapshot. */
export function pathInCell({ path }: Pick<ManifestEntry, 'path'>, layers: readonly KeptLayer[]): Uint8Array {
  const layer = layerOf(path, layers)
  return Buffer.from(layer ? `${bytesOf(layer.path)}${path.slice(layer.prefix.length)}` : `/${path}`, 'latin1')
}

function bytesOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}
