/** Puts what a snapshot holds into a sandbox that nobody has seen yet. */
import { SandboxError } from '../contract/errors.js'
import type { Limits } from '../contract/limits.js'
import type { StoredSnapshot } from '../contract/snapshot-store.js'
import type { LayerAccess } from './snapshots-access.js'
import { isOwn, type KeptLayer, layerOf, pathBelow } from './snapshots-layers.js'
import { inPieces } from './snapshots-pieces.js'
import { readTar, type TarEntry } from './snapshots-tar-reader.js'
import { encodeTarHeader, endOfTar, type TarHeader, tarPadding } from './snapshots-tar-writer.js'

/** Before anything is opened: what will not fit is told by the limit that it is too large for. */
export function checkRoom({ info, needs }: StoredSnapshot, { diskBytes, inodes, fileSizeBytes }: Limits): void {
  const lacking = [
    ...(needs.diskBytes > diskBytes ? [`limits.disk: ${info.id} needs ${needs.diskBytes} bytes, and the limit is ${diskBytes}`] : []),
    ...(needs.entries > inodes ? [`limits.inodes: ${info.id} has ${needs.entries} entries, and the limit is ${inodes}`] : []),
    ...(needs.largestFileBytes > fileSizeBytes
      ? [`limits.fileSize: ${info.id} has a file of ${needs.largestFileBytes} bytes, and the limit is ${fileSizeBytes}`]
      : []),
  ]
  if (lacking.length > 0) throw new SandboxError('invalid', lacking.join('; '))
}

/** The archive is compared with what was kept while it is read: whoever calls this hands the sandbox to nobody before it resolves. */
export async function restoreSnapshot(snapshot: StoredSnapshot, layers: readonly KeptLayer[], access: LayerAccess): Promise<void> {
  const entries = new Ahead(readTar(snapshot.archive()))
  try {
    await restoreEntries(snapshot, layers, { entries, access })
  } catch (error) {
    const damage = entries.failure ?? (isOfEntries(error) ? await damageOf(snapshot) : undefined)
    throw damage === undefined ? error : named(damage, snapshot)
  } finally {
    await entries.close()
  }
}

/** What a path or an owner that is not what was kept would lead to as well. */
function isOfEntries(error: unknown): boolean {
  return error instanceof SandboxError && ['invalid', 'conflict', 'not-found', 'denied'].includes(error.code)
}

async function damageOf(snapshot: StoredSnapshot): Promise<unknown> {
  try {
    for await (const _ of snapshot.archive());
    return undefined
  } catch (error) {
    return error
  }
}

function named(damage: unknown, { info: { id } }: StoredSnapshot): unknown {
  const why = (damage as Error).message
  if (why.includes(id)) return damage
  return new SandboxError('broken', `snapshot ${id} is damaged: ${why}`, { hint: `glovebox snapshots remove ${id}`, cause: damage })
}

interface Restoring {
  readonly entries: Ahead
  readonly access: LayerAccess
}

async function restoreEntries(snapshot: StoredSnapshot, layers: readonly KeptLayer[], { entries, access }: Restoring): Promise<void> {
  for (let first = await entries.peek(); first !== undefined; first = await entries.peek()) {
    const { path } = first.header
    const layer = layerOf(path, layers)
    if (!layer) throw new SandboxError('invalid', `from: ${snapshot.info.id} has /${path}, where this sandbox has no folder of its own`)
    const landed = (header: TarHeader): TarHeader | undefined => landing(header, layer, snapshot)
    const isHere = (header: TarHeader): boolean => layerOf(header.path, layers) === layer
    await access.unpack(layer, inPieces(archiveOf(entries, { isHere, landed }))).catch((error: unknown) => {
      throw roomError(error, snapshot)
    })
  }
}

interface Landing {
  /** Whether an entry is of the layer that is unpacked. */
  readonly isHere: (header: TarHeader) => boolean
  readonly landed: (header: TarHeader) => TarHeader | undefined
}

/** The entries that belong to one layer, under their names below it. */
async function* archiveOf(entries: Ahead, { isHere, landed }: Landing): AsyncGenerator<Uint8Array, void, undefined> {
  for (let entry = await entries.peek(); entry !== undefined && isHere(entry.header); entry = await entries.peek()) {
    const header = landed(entry.header)
    if (header) {
      yield encodeTarHeader(header)
      yield* entries.contentOf(entry)
      yield tarPadding(entry.header.size)
    }
    entries.take()
  }
  yield endOfTar
}

/** As the worker is to put it there; undefined for what is there anyway. Throws SandboxError('invalid') for what would land in a mount. */
function landing(header: TarHeader, layer: KeptLayer, { info }: StoredSnapshot): TarHeader | undefined {
  const path = pathBelow(header.path, layer)
  if (!isOwn(path, layer)) {
    // A folder on the way to a mount is there anyway.
    if (header.type === 'folder' && header.mark === undefined && layer.mounts.some((mount) => mount.startsWith(`${path}/`))) return undefined
    throw new SandboxError('invalid', `from: ${info.id} has /${header.path}, where this sandbox has a mount`)
  }
  return { ...header, path, target: header.type === 'same' ? pathBelow(header.target, layer) : header.target }
}

/** Sums are of whole pages, but folders and the file system's own needs come to them. */
function roomError(error: unknown, { info, needs }: StoredSnapshot): unknown {
  if (!(error instanceof SandboxError) || error.code !== 'full') return error
  return new SandboxError('invalid', `limits.disk: ${info.id} needs more than ${needs.diskBytes} bytes; no room was left when its files were put back`, {
    cause: error,
  })
}

/** Entries one after the other, of which the next can be looked at before it is taken. */
class Ahead {
  readonly #entries: AsyncGenerator<TarEntry, void, undefined>
  #next: Promise<TarEntry | undefined> | undefined
  #failure: unknown

  constructor(entries: AsyncGenerator<TarEntry, void, undefined>) {
    this.#entries = entries
  }

  peek(): Promise<TarEntry | undefined> {
    this.#next ??= this.#entries.next().then(
      ({ value }) => value ?? undefined,
      (error: unknown) => this.#fail(error),
    )
    return this.#next
  }

  async *contentOf({ content }: TarEntry): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* content
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Why the archive could not be read, if it could not: that is no fault of the cell's. */
  get failure(): unknown {
    return this.#failure
  }

  take(): void {
    this.#next = undefined
  }

  async close(): Promise<void> {
    await this.#entries.return()
  }

  /** Not as it is: whoever feeds a worker with this takes an error of ours for the worker's. */
  #fail(error: unknown): never {
    this.#failure ??= error
    throw new Error('the archive cannot be read', { cause: error })
  }
}
