/** Reaches the files of a sandbox through workers in its cell. */
import type { WorkerEntry } from '../channel/index.js'
import { SandboxError } from '../contract/errors.js'
import { FileOperation, type FilesHost, type OperationOrder } from './file-operation.js'
import type { WorkerKind } from './file-workers.js'
import type { LayerAccess, ListedEntry } from './snapshots-access.js'
import type { KeptLayer } from './snapshots-layers.js'

export interface AccessOptions {
  readonly signal: AbortSignal | undefined
  /** Where the cell has overlays. */
  readonly overlays: boolean
}

export function layerAccess(host: FilesHost, { signal, overlays }: AccessOptions): LayerAccess {
  const kind = layerReader(host, { overlays })
  const order = (name: string, { path }: KeptLayer): OperationOrder => ({ host, call: { name, path }, ...kind, signal })
  return {
    async *list(layer, { hashes }) {
      const operation = await FileOperation.begin(order('list', layer))
      const { client } = operation.worker
      const entries = wholeListing(client.list(placeOf(layer), { hash: hashes, ...within(layer) }), { folder: layer.path, hashes })
      for await (const entry of operation.stream(entries)) if (entry.name.length > 0) yield listedOf(entry, layer)
    },
    async *pack(layer) {
      const operation = await FileOperation.begin(order('pack', layer))
      yield* operation.stream(operation.worker.client.pack(placeOf(layer), within(layer)))
    },
    unpack: async (layer, archive) => {
      const options = { keepOwner: true, marks: true }
      await FileOperation.run(order('unpack', layer), ({ client }) => client.unpack(bytesOf(layer.path), archive, options))
    },
  }
}

/** Root of the cell can read whatever a guest made; where there is none, there is only one user anyway. */
export function layerReader({ users, defaultUser }: FilesHost, { overlays }: Pick<AccessOptions, 'overlays'>): WorkerKind {
  return { user: users.some(({ name }) => name === 'root') ? 'root' : defaultUser, layers: overlays }
}

/** What was written over an overlay lies in a folder of the layers'. */
function placeOf({ path, over }: KeptLayer): Uint8Array {
  return bytesOf(over ? `${over.index}` : path)
}

function within({ over }: KeptLayer): { readonly inLayers: boolean; readonly oneFilesystem: boolean } {
  return { inLayers: over !== undefined, oneFilesystem: over === undefined }
}

interface Listing {
  readonly folder: string
  readonly hashes: boolean
}

/** What could not be looked into would look like what is not there. */
async function* wholeListing(
  entries: AsyncGenerator<WorkerEntry, { readonly isIncomplete: boolean }, undefined>,
  { folder, hashes }: Listing,
): AsyncGenerator<WorkerEntry, void, undefined> {
  let unread: WorkerEntry | undefined
  for (let next = await entries.next(); ; next = await entries.next()) {
    if (next.done !== true) {
      if (hashes && next.value.type === 'file' && next.value.hash === undefined) unread ??= next.value
      yield next.value
    } else {
      if (!next.value.isIncomplete) return
      const what = unread ? `${folder}/${new TextDecoder().decode(unread.name)}` : `a folder below ${folder}`
      throw new SandboxError('denied', `${what} cannot be read, not even by the user who may read most`)
    }
  }
}

function listedOf(entry: WorkerEntry, { over }: KeptLayer): ListedEntry {
  const { name, type, mode, uid, gid, size, hash, target, dev, ino, changedNs, modifiedNs } = entry
  const mark = over && markOf(entry)
  return {
    path: latin1(name),
    type,
    mode,
    uid,
    gid,
    size,
    hash: hash === undefined ? '' : Buffer.from(hash).toString('hex'),
    target: target === undefined ? '' : latin1(target),
    file: `${dev}:${ino}`,
    // A folder's own times and size change with what is in it, which is told by itself.
    stamp: type === 'folder' ? `${ino} ${mode} ${uid} ${gid}` : `${ino} ${changedNs} ${modifiedNs} ${size} ${mode} ${uid} ${gid}`,
    ...(mark && { mark }),
  }
}

/** A removed path is a device without numbers; a folder has no use for that field otherwise. */
function markOf({ type, rdev }: WorkerEntry): ListedEntry['mark'] {
  if (type === 'folder') return rdev === 1n ? 'opaque' : undefined
  return type === 'device' && rdev === 0n ? 'removed' : undefined
}

function bytesOf(path: string): Uint8Array {
  return Buffer.from(path, 'utf8')
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1')
}
