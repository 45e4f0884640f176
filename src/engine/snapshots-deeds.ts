/**
 * What of a layer is its sandbox's doing. An overlay keeps more than that: a folder above whatever was written, marks where nothing is, and marks on folders that
 * say no more than what is beneath says. Two sandboxes with the same files have the same deeds, however they came to them.
 */
import type { Beneath, BeneathEntry } from '../contract/driver.js'
import type { ManifestEntry } from '../contract/snapshot-store.js'
import type { LayerAccess, ListedEntry } from './snapshots-access.js'
import { isOwn, type KeptLayer, pathInSnapshot } from './snapshots-layers.js'

/** Permission bits and the sticky bit: what a restored file may have. */
export const keptModes = 0o1777

export interface Deeds {
  /** All that was found, but for what is not the sandbox's own. */
  readonly listed: readonly ListedEntry[]
  /** Paths below the layer that say nothing. */
  readonly nothing: ReadonlySet<string>
  /** Folders in which nothing that lies beneath is to be seen, the outermost ones. */
  readonly hides: ReadonlySet<string>
  /** What was given and is gone. */
  readonly missing: readonly ManifestEntry[]
}

export async function readDeeds(layer: KeptLayer, access: LayerAccess, options: { readonly hashes: boolean }): Promise<Deeds> {
  const listed = await listOwn(layer, access, options)
  if (!layer.over) return { listed, hides: new Set(), ...givenDeeds(layer, listed) }
  await using beneath = await layer.over.open()
  return { listed, missing: [], ...(await overlayDeeds(listed, beneath)) }
}

export async function listOwn(layer: KeptLayer, access: LayerAccess, options: { readonly hashes: boolean }): Promise<ListedEntry[]> {
  const listed: ListedEntry[] = []
  for await (const entry of access.list(layer, options)) if (isOwn(entry.path, layer)) listed.push(entry)
  return listed
}

function givenDeeds(layer: KeptLayer, listed: readonly ListedEntry[]): Pick<Deeds, 'nothing' | 'missing'> {
  const found = new Map(listed.map((entry) => [entry.path, entry]))
  const nothing = new Set<string>()
  const missing: ManifestEntry[] = []
  for (const { path, type, mode, target } of layer.given ?? []) {
    const entry = found.get(path)
    if (entry === undefined && isOwn(path, layer)) missing.push(removedEntry(pathInSnapshot(path, layer)))
    if (entry?.type === type && entry.target === target && (entry.mode & keptModes) === mode) nothing.add(path)
  }
  return { nothing, missing }
}

async function overlayDeeds(listed: readonly ListedEntry[], beneath: Beneath): Promise<Pick<Deeds, 'nothing' | 'hides'>> {
  const nothing = new Set<string>()
  const hides = new Set<string>()
  let hidden: string | undefined
  for (const entry of listed) {
    const { path, type, mark } = entry
    const isHidden = hidden !== undefined && path.startsWith(hidden)
    if (mark === 'removed' && (isHidden || !(await beneath.look(path)))) nothing.add(path)
    if (type !== 'folder' || isHidden) continue
    const lower = await beneath.look(path)
    if (mark === 'opaque' || lower?.type !== 'folder') {
      hides.add(path)
      hidden = `${path}/`
    } else if (isLike(entry, lower)) nothing.add(path)
  }
  return { nothing, hides }
}

function isLike({ mode, uid, gid }: ListedEntry, lower: BeneathEntry): boolean {
  return (mode & keptModes) === (lower.mode & keptModes) && uid === lower.uid && gid === lower.gid
}

export function removedEntry(path: string): ManifestEntry {
  return { path, type: 'removed', mode: 0, uid: 0, gid: 0, size: 0, hash: '', target: '', sameAs: '' }
}

/** In the form that a snapshot has it. Sockets are nothing that could be kept. */
export function entriesOf({ listed, nothing, hides, missing }: Deeds, layer: KeptLayer): ManifestEntry[] {
  const first = new Map<string, string>()
  const entries = listed.flatMap(({ path: below, type, mode, uid, gid, size, hash, target, file, mark }): ManifestEntry[] => {
    const path = pathInSnapshot(below, layer)
    if (nothing.has(below)) return []
    if (mark === 'removed') return [removedEntry(path)]
    if (type === 'socket' || type === 'device') return []
    const common = {
      path,
      type,
      mode: mode & keptModes,
      uid,
      gid,
      size: 0,
      hash: '',
      target: '',
      sameAs: '',
      ...(hides.has(below) && { hides: true as const }),
    }
    if (type === 'link') return [{ ...common, size: target.length, target }]
    if (type !== 'file') return [common]
    const sameAs = first.get(file) ?? ''
    if (sameAs === '') first.set(file, path)
    return [{ ...common, size, hash, sameAs }]
  })
  return [...entries, ...missing]
}
