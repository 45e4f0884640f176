/**
 * Takes a sandbox's files out. The archive that a worker in the cell makes of each layer is read here, entry by entry, and written anew under the names
 * that a snapshot has: so what is kept is what arrived, and not what a cell says about it. Nothing is held but the piece that is on its way.
 *
 * Programs may be running where nothing can stop them. Each layer is listed before and after it is packed; what differs then was written to meanwhile, and of a
 * file that is read while it is written nobody can say what it was.
 */
import { createHash } from 'node:crypto'
import { SandboxError } from '../contract/errors.js'
import type { ManifestEntry } from '../contract/snapshot-store.js'
import type { LayerAccess, ListedEntry } from './snapshots-access.js'
import { type Deeds, entriesOf, keptModes, listOwn, readDeeds, removedEntry } from './snapshots-deeds.js'
import { isOwn, type KeptLayer, pathInSnapshot } from './snapshots-layers.js'
import { readTar, type TarEntry } from './snapshots-tar-reader.js'
import { encodeTarHeader, endOfTar, type TarHeader, tarPadding } from './snapshots-tar-writer.js'

/** Where the archive goes, and what is in it. */
export interface PackingSink {
  write(bytes: Uint8Array): Promise<void>
  add(entry: ManifestEntry): Promise<void>
}

export async function packLayers(layers: readonly KeptLayer[], access: LayerAccess, sink: PackingSink): Promise<void> {
  for (const layer of layers) {
    const deeds = await readDeeds(layer, access, { hashes: false })
    await packLayer({ layer, deeds, access }, sink)
    refuseChanged(layer, stampsOf(deeds.listed), stampsOf(await listOwn(layer, access, { hashes: false })))
  }
  await sink.write(endOfTar)
}

interface Packing {
  readonly layer: KeptLayer
  readonly deeds: Deeds
  readonly access: LayerAccess
}

async function packLayer({ layer, deeds, access }: Packing, sink: PackingSink): Promise<void> {
  /** A file that has more names comes again under each, without its content. */
  const seen = new Map<string, ManifestEntry>()
  for await (const { header, content } of readTar(access.pack(layer))) {
    const own = ownHeader(header, layer, deeds)
    if (!own) continue
    const known = await copyEntry({ header: own, content }, { layer, sink, seen })
    if (known.type === 'file') seen.set(known.path, known)
    await sink.add(known)
  }
  for (const { path } of deeds.missing) {
    await sink.write(encodeTarHeader(removalHeader(path)))
    await sink.add(removedEntry(path))
  }
}

/** As it is to be kept, still by its path below the layer; undefined for what is not the sandbox's doing. */
function ownHeader({ mark, ...header }: TarHeader, layer: KeptLayer, { nothing, hides }: Deeds): TarHeader | undefined {
  const { path } = header
  if (!isOwn(path, layer) || nothing.has(path)) return undefined
  if (layer.over !== undefined && mark === 'removed') return removalHeader(path)
  return hides.has(path) && header.type === 'folder' ? { ...header, mark: 'hides' } : header
}

function removalHeader(path: string): TarHeader {
  return { path, type: 'file', mode: 0, uid: 0, gid: 0, size: 0, mtime: '0', target: '', mark: 'removed' }
}

interface Copying {
  readonly layer: KeptLayer
  readonly sink: PackingSink
  readonly seen: ReadonlyMap<string, ManifestEntry>
}

async function copyEntry({ header, content }: TarEntry, { layer, sink, seen }: Copying): Promise<ManifestEntry> {
  const below = (path: string): string => pathInSnapshot(path, layer)
  const path = below(header.path)
  const mode = header.mode & keptModes
  const target = header.type === 'same' ? below(header.target) : header.target
  await sink.write(encodeTarHeader({ ...header, path, mode, target }))
  const hash = createHash('sha256')
  for await (const bytes of content) {
    hash.update(bytes)
    await sink.write(bytes)
  }
  await sink.write(tarPadding(header.size))
  const { uid, gid, size, type } = header
  if (header.mark === 'removed') return removedEntry(path)
  if (type === 'same') {
    const first = seen.get(target)
    if (!first) throw new SandboxError('broken', 'the archive has another name of a file that it does not have')
    return { ...first, path, sameAs: target }
  }
  const common = { path, type, mode, uid, gid, size, hash: '', target: '', sameAs: '', ...(header.mark === 'hides' && { hides: true as const }) }
  if (type === 'file') return { ...common, hash: hash.digest('hex') }
  return type === 'link' ? { ...common, size: target.length, target } : common
}

function stampsOf(listed: readonly ListedEntry[]): Map<string, string> {
  return new Map(listed.flatMap(({ path, type, stamp, mark }) => (type === 'socket' ? [] : [[path, `${stamp} ${mark}`]])))
}

function refuseChanged({ path }: KeptLayer, before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): void {
  const came = [...after].find(([name, stamp]) => before.get(name) !== stamp)
  const changed = came?.[0] ?? [...before.keys()].find((name) => !after.has(name))
  if (changed === undefined) return
  const shown = `${path === '/' ? '' : path}/${Buffer.from(changed, 'latin1').toString('utf8')}`
  throw new SandboxError('conflict', `${shown} was written to while it was read; take a snapshot when nothing writes`)
}

/** What was written, in the form that a snapshot has it. */
export async function currentEntries(layers: readonly KeptLayer[], access: LayerAccess): Promise<ManifestEntry[]> {
  const entries: ManifestEntry[] = []
  for (const layer of layers) entries.push(...entriesOf(await readDeeds(layer, access, { hashes: true }), layer))
  return entries
}
