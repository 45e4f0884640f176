/**
 * Takes a sandbox's files out. The archive that a worker in the cell makes of each folder is read here, entry by entry, and written anew under the names
 * that a snapshot has: so what is kept is what arrived, and not what a cell says about it. Nothing is held but the piece that is on its way.
 *
 * Programs may be running. Each folder is listed before and after it is packed; what differs then was written to meanwhile, and of a file that is
 * read while it is written nobody can say what it was.
 */
import { createHash } from 'node:crypto'
import { SandboxError } from '../contract/errors.js'
import type { ManifestEntry } from '../contract/snapshot-store.js'
import type { LayerAccess, ListedEntry } from './snapshots-access.js'
import { isOwn, type KeptLayer } from './snapshots-layers.js'
import { readTar, type TarEntry } from './snapshots-tar-reader.js'
import { encodeTarHeader, endOfTar, tarPadding } from './snapshots-tar-writer.js'

/** Where the archive goes, and what is in it. */
export interface PackingSink {
  write(bytes: Uint8Array): Promise<void>
  add(entry: ManifestEntry): Promise<void>
}

/** Permission bits and the sticky bit: what a restored file may have. */
const keptModes = 0o1777

export async function packLayers(layers: readonly KeptLayer[], access: LayerAccess, sink: PackingSink): Promise<void> {
  for (const layer of layers) {
    const before = await stampsOf(layer, access)
    await packLayer(layer, access, sink)
    refuseChanged(layer, before, await stampsOf(layer, access))
  }
  await sink.write(endOfTar)
}

async function packLayer(layer: KeptLayer, access: LayerAccess, sink: PackingSink): Promise<void> {
  /** A file that has more names comes again under each, without its content. */
  const seen = new Map<string, ManifestEntry>()
  for await (const entry of readTar(access.pack(layer.path))) {
    if (!isOwn(entry.header.path, layer)) continue
    const known = await copyEntry(entry, { layer, sink, seen })
    if (known.type === 'file') seen.set(known.path, known)
    await sink.add(known)
  }
}

interface Copying {
  readonly layer: KeptLayer
  readonly sink: PackingSink
  readonly seen: ReadonlyMap<string, ManifestEntry>
}

async function copyEntry({ header, content }: TarEntry, { layer, sink, seen }: Copying): Promise<ManifestEntry> {
  const below = (path: string): string => `${layer.prefix}/${path}`
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
  if (type === 'same') {
    const first = seen.get(target)
    if (!first) throw new SandboxError('broken', 'the archive has another name of a file that it does not have')
    return { ...first, path, sameAs: target }
  }
  const common = { path, type, mode, uid, gid, size, hash: '', target: '', sameAs: '' }
  if (type === 'file') return { ...common, hash: hash.digest('hex') }
  return type === 'link' ? { ...common, size: target.length, target } : common
}

async function stampsOf(layer: KeptLayer, access: LayerAccess): Promise<Map<string, string>> {
  const stamps = new Map<string, string>()
  for await (const { path, type, stamp } of access.list(layer.path, { hashes: false })) if (isOwn(path, layer) && type !== 'socket') stamps.set(path, stamp)
  return stamps
}

function refuseChanged({ path }: KeptLayer, before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): void {
  const came = [...after].find(([name, stamp]) => before.get(name) !== stamp)
  const changed = came?.[0] ?? [...before.keys()].find((name) => !after.has(name))
  if (changed === undefined) return
  const shown = `${path}/${Buffer.from(changed, 'latin1').toString('utf8')}`
  throw new SandboxError('conflict', `${shown} was written to while it was read; take a snapshot when nothing writes`)
}

/** What is there now, in the form that a snapshot has it. Sockets are nothing that could be kept. */
export async function currentEntries(layers: readonly KeptLayer[], access: LayerAccess): Promise<ManifestEntry[]> {
  const entries: ManifestEntry[] = []
  for (const layer of layers) {
    const listed: ListedEntry[] = []
    for await (const entry of access.list(layer.path, { hashes: true })) if (isOwn(entry.path, layer)) listed.push(entry)
    entries.push(...manifestOf(listed, layer))
  }
  return entries
}

function manifestOf(listed: readonly ListedEntry[], { prefix }: KeptLayer): ManifestEntry[] {
  const first = new Map<string, string>()
  return listed.flatMap(({ path: below, type, mode, uid, gid, size, hash, target, file }): ManifestEntry[] => {
    if (type === 'socket' || type === 'device') return []
    const path = `${prefix}/${below}`
    const common = { path, type, mode: mode & keptModes, uid, gid, size: 0, hash: '', target: '', sameAs: '' }
    if (type === 'link') return [{ ...common, size: target.length, target }]
    if (type !== 'file') return [common]
    const sameAs = first.get(file) ?? ''
    if (sameAs === '') first.set(file, path)
    return [{ ...common, size, hash, sameAs }]
  })
}
