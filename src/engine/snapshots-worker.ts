/** Reaches the files of a sandbox through workers in its cell. */
import type { WorkerEntry } from '../channel/index.js'
import { SandboxError } from '../contract/errors.js'
import { FileOperation, type FilesHost, type OperationOrder } from './file-operation.js'
import type { WorkerKind } from './file-workers.js'
import type { LayerAccess, ListedEntry } from './snapshots-access.js'

export function layerAccess(host: FilesHost, signal: AbortSignal | undefined): LayerAccess {
  const { user, layers } = layerReader(host)
  const order = (name: string, path: string): OperationOrder => ({ host, call: { name, path }, user, layers, signal })
  return {
    async *list(folder, { hashes }) {
      const operation = await FileOperation.begin(order('list', folder))
      const { client } = operation.worker
      const entries = wholeListing(client.list(bytesOf(folder), { hash: hashes, oneFilesystem: true }), { folder, hashes })
      for await (const entry of operation.stream(entries)) if (entry.name.length > 0) yield listedOf(entry)
    },
    async *pack(folder) {
      const operation = await FileOperation.begin(order('pack', folder))
      yield* operation.stream(operation.worker.client.pack(bytesOf(folder), { oneFilesystem: true }))
    },
    unpack: async (folder, archive) => {
      await FileOperation.run(order('unpack', folder), ({ client }) => client.unpack(bytesOf(folder), archive, { keepOwner: true }))
    },
  }
}

/** Root of the cell can read whatever a guest made; where there is none, there is only one user anyway. */
export function layerReader({ users, defaultUser }: FilesHost): WorkerKind {
  return { user: users.some(({ name }) => name === 'root') ? 'root' : defaultUser, layers: false }
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

function listedOf({ name, type, mode, uid, gid, size, hash, target, dev, ino, changedNs, modifiedNs }: WorkerEntry): ListedEntry {
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
  }
}

function bytesOf(path: string): Uint8Array {
  return Buffer.from(path, 'utf8')
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1')
}
