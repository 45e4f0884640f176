/** An archive of what changed: what was added or changed whole, what was removed as an empty file `.wh.NAME`, as a layer of an OCI image has it. */
import { SandboxError } from '../contract/errors.js'
import type { ManifestEntry } from '../contract/snapshot-store.js'
import { type Difference, exportedPaths, topmostRemovals } from '../policy/diff.js'
import type { LayerAccess } from './snapshots-access.js'
import { keptModes } from './snapshots-deeds.js'
import { isOwn, type KeptLayer, layerOf, pathInSnapshot } from './snapshots-layers.js'
import { inPieces } from './snapshots-pieces.js'
import { readTar } from './snapshots-tar-reader.js'
import { encodeTarHeader, endOfTar, tarPadding } from './snapshots-tar-writer.js'

const removalMark = '.wh.'

export interface Exporting {
  readonly differences: readonly Difference[]
  /** All that was written. */
  readonly now: readonly ManifestEntry[]
  readonly layers: readonly KeptLayer[]
}

/** Throws SandboxError('conflict') for a file whose own name means that something was removed, and for what only lies beneath. */
export function exportChanges(exporting: Exporting, access: LayerAccess): AsyncGenerator<Uint8Array, void, undefined> {
  const paths = exportedPaths(exporting.differences, exporting.now)
  const written = new Set(exporting.now.flatMap(({ path, type }) => (type === 'removed' ? [] : [path])))
  const beneath = [...paths].find((path) => !written.has(path))
  if (beneath !== undefined) {
    throw new SandboxError(
      'conflict',
      `/${Buffer.from(beneath, 'latin1').toString('utf8')} cannot be exported: it is what lies beneath, and nothing was written there`,
    )
  }
  const removals = topmostRemovals(exporting.differences).map(({ path }) => path)
  const marked = [...paths, ...removals].find((path) => nameOf(path).startsWith(removalMark))
  if (marked !== undefined) {
    throw new SandboxError(
      'conflict',
      `/${Buffer.from(marked, 'latin1').toString('utf8')} cannot be exported: a name that begins with ${removalMark} means something removed`,
    )
  }
  return inPieces(archiveOf(exporting, access, paths))
}

async function* archiveOf({ differences, layers }: Exporting, access: LayerAccess, paths: ReadonlySet<string>): AsyncGenerator<Uint8Array, void, undefined> {
  for (const { path } of topmostRemovals(differences)) yield encodeTarHeader(removalOf(path))
  for (const layer of layers) {
    if (![...paths].some((path) => layerOf(path, layers) === layer)) continue
    for await (const { header: marked, content } of readTar(access.pack(layer))) {
      const { mark: _, ...header } = marked
      const path = pathInSnapshot(header.path, layer)
      if (!isOwn(header.path, layer) || !paths.has(path)) continue
      const target = header.type === 'same' ? pathInSnapshot(header.target, layer) : header.target
      yield encodeTarHeader({ ...header, path, target, mode: header.mode & keptModes })
      yield* content
      yield tarPadding(header.size)
    }
  }
  yield endOfTar
}

function removalOf(path: string): Parameters<typeof encodeTarHeader>[0] {
  const folder = path.slice(0, path.lastIndexOf('/') + 1)
  return { path: `${folder}${removalMark}${nameOf(path)}`, type: 'file', mode: 0o644, uid: 0, gid: 0, size: 0, mtime: '0', target: '' }
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
