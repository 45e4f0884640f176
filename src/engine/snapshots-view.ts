/** What the programs of a sandbox see: what was written, and what lies beneath and is not hidden by it. */
import type { Beneath, BeneathEntry } from '../contract/driver.js'
import type { ManifestEntry } from '../contract/snapshot-store.js'
import { keptModes } from './snapshots-deeds.js'
import { type KeptLayer, layerOf, pathBelow, pathInSnapshot } from './snapshots-layers.js'

/** Of all that is beneath, only what is told is known: what lies beneath the entries, or in folders that they hide. */
export function viewOf(written: readonly ManifestEntry[], beneath: readonly ManifestEntry[]): ManifestEntry[] {
  const own = new Map(written.map((entry) => [entry.path, entry]))
  const shows = beneath.filter(({ path }) => !own.has(path) && !isHidden(path, own))
  return [...written.filter(({ type }) => type !== 'removed'), ...shows]
}

function isHidden(path: string, own: ReadonlyMap<string, ManifestEntry>): boolean {
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
    const above = own.get(path.slice(0, end))
    if (above && (above.type !== 'folder' || above.hides)) return true
  }
  return false
}

/** What lies beneath any of these entries. */
export async function beneathOf(layers: readonly KeptLayer[], written: readonly ManifestEntry[]): Promise<ManifestEntry[]> {
  const found: ManifestEntry[] = []
  for (const layer of layers.filter(({ given, over }) => given ?? over)) {
    const own = written.filter(({ path }) => layerOf(path, layers) === layer)
    if (layer.given) found.push(...givenEntries(layer, own))
    if (!layer.over || own.length === 0) continue
    await using beneath = await layer.over.open()
    found.push(...(await new Lookout(layer, beneath).lookBelow(own)))
  }
  return found
}

/** Whose they are is nobody's concern: an entry that is compared with one is given its owner. */
function givenEntries(layer: KeptLayer, written: readonly ManifestEntry[]): ManifestEntry[] {
  const owners = new Map(written.map((entry) => [entry.path, entry]))
  return (layer.given ?? []).map(({ path: below, type, mode, target }) => {
    const path = pathInSnapshot(below, layer)
    const { uid = 0, gid = 0 } = owners.get(path) ?? {}
    return { path, type, mode, uid, gid, size: target.length, hash: '', target, sameAs: '' }
  })
}

class Lookout {
  readonly #layer: KeptLayer
  readonly #beneath: Beneath
  readonly #found = new Map<string, ManifestEntry>()

  constructor(layer: KeptLayer, beneath: Beneath) {
    this.#layer = layer
    this.#beneath = beneath
  }

  async lookBelow(written: readonly ManifestEntry[]): Promise<ManifestEntry[]> {
    for (const entry of written) {
      const below = pathBelow(entry.path, this.#layer)
      const lower = await this.#see(below)
      if (lower?.type === 'file' && lower.hash === '' && entry.type === 'file' && entry.size === lower.size) {
        this.#found.set(below, { ...lower, hash: await this.#beneath.hash(below) })
      }
      if (lower?.type === 'folder' && (entry.type !== 'folder' || entry.hides)) await this.#seeAll(below)
    }
    return [...this.#found.values()]
  }

  async #see(below: string): Promise<ManifestEntry | undefined> {
    const known = this.#found.get(below)
    if (known) return known
    const lower = await this.#beneath.look(below)
    const entry = lower && entryOf(pathInSnapshot(below, this.#layer), lower)
    if (entry) this.#found.set(below, entry)
    return entry
  }

  async #seeAll(folder: string): Promise<void> {
    for (const name of await this.#beneath.names(folder)) {
      const below = `${folder}/${name}`
      if ((await this.#see(below))?.type === 'folder') await this.#seeAll(below)
    }
  }
}

/** Sockets and devices are nothing that could be kept, or missed. */
function entryOf(path: string, { type, mode, uid, gid, size, target }: BeneathEntry): ManifestEntry | undefined {
  if (type === 'socket' || type === 'device') return undefined
  const sizes = { file: size, link: target.length, folder: 0, fifo: 0 }
  return { path, type, mode: mode & keptModes, uid, gid, size: sizes[type], hash: '', target, sameAs: '' }
}
