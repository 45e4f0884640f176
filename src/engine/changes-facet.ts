/** What was written over folders that a sandbox sees through an overlay, told entry by entry. */
import { FileFailure, type WorkerEntry } from '../channel/index.js'
import { checkCallOptions } from '../contract/call-options.js'
import type { PlatformChanges, Written } from '../contract/changes.js'
import type { CellLayer } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { CallOptions } from '../contract/platform.js'
import { pathBytes, pathText } from '../contract/path-text.js'
import { printable } from '../contract/printable.js'
import { errno } from './errno.js'
import { FileOperation, type FilesHost } from './file-operation.js'

export interface ChangesHost {
  readonly files: FilesHost
  readonly layers: readonly CellLayer[]
}

export class ChangesFacet implements PlatformChanges {
  readonly #find: (id: string) => Promise<ChangesHost>

  constructor(find: (id: string) => Promise<ChangesHost>) {
    this.#find = find
  }

  async written(id: string, target: string, options: CallOptions = {}): Promise<readonly Written[]> {
    const { signal } = checkCallOptions(options)
    signal?.throwIfAborted()
    const { files, layers } = await this.#find(id)
    const layer = layers.find(({ kind, path }) => kind === 'overlay' && path === target)
    if (layer?.kind !== 'overlay') throw new SandboxError('invalid', `target: '${printable(target)}' is no mount with an overlay`)
    // Root of the cell can read whatever a guest made; where there is none, there is only one user anyway.
    const user = files.users.some(({ name }) => name === 'root') ? 'root' : files.defaultUser
    const order = { host: files, call: { name: 'changes', path: target }, user, signal }
    return wholeListing({
      target,
      list: () =>
        FileOperation.run({ ...order, layers: true }, ({ client }) => listing(client.list(Buffer.from(`${layer.index}`), { inLayers: true }), target)),
      open: (path, mode) => FileOperation.run(order, ({ client }) => client.chmod(pathBytes(`${target}/${path}`), mode)),
    })
  }
}

type WrittenFolder = Extract<Written, { type: 'folder' }>

interface Listing {
  readonly written: readonly Written[]
  readonly isIncomplete: boolean
}

interface ListingOrder {
  readonly target: string
  readonly list: () => Promise<Listing>
  readonly open: (path: string, mode: number) => Promise<unknown>
}

/** What its owner needs to look into a folder, and to have it back for good. */
const readBits = 0o500
const ownerBits = 0o700
/** The mount is no entry of its own, and may be closed like any other folder. */
const top: WrittenFolder = { type: 'folder', path: '', mode: ownerBits, hides: false }

/** Folders that a program closed to itself are opened by the same user, one below the other, and told with the modes that they had. */
async function wholeListing({ target, list, open }: ListingOrder): Promise<Written[]> {
  const modes = new Map<string, number>()
  for (;;) {
    const { written, isIncomplete } = await list().catch((error: unknown) => unseen(error, { isExpected: modes.size === 0 }))
    const closed = isIncomplete ? [top, ...written.filter(isClosed)].filter(({ path }) => !modes.has(path)) : []
    if (closed.length === 0) return told({ written, isIncomplete }, { modes, target })
    for (const { path, mode } of closed) {
      modes.set(path, mode)
      await open(path, mode | ownerBits).catch((error: unknown) => unseen(error, { isExpected: true }))
    }
  }
}

/** What may not be looked at; everything else is thrown. */
function unseen(error: unknown, { isExpected }: { readonly isExpected: boolean }): Listing {
  if (isExpected && error instanceof SandboxError && error.code === 'denied') return { written: [], isIncomplete: true }
  throw error
}

function isClosed(entry: Written): entry is WrittenFolder {
  return entry.type === 'folder' && (entry.mode & readBits) !== readBits
}

interface Opened {
  /** Before they were opened. */
  readonly modes: ReadonlyMap<string, number>
  readonly target: string
}

/** What could not be looked into would look like what is not there: it is left out by its name, or nothing is told. */
function told({ written, isIncomplete }: Listing, { modes, target }: Opened): Written[] {
  if (isIncomplete && !written.some(isClosed)) throw new SandboxError('denied', `not all that was written in ${target} can be read`)
  return written.map((entry) => {
    if (entry.type !== 'folder') return entry
    if (isIncomplete && isClosed(entry)) return { type: 'other', path: entry.path, why: 'it is closed to its owner' }
    return { ...entry, mode: modes.get(entry.path) ?? entry.mode }
  })
}

/** As long as a path in a cell can be, to be opened by it. */
const mostPathBytes = 4095
/** Of a path that is too long, which is told and not used. */
const toldBytes = 200

async function listing(entries: AsyncGenerator<WorkerEntry, { readonly isIncomplete: boolean }, undefined>, target: string): Promise<Listing> {
  const written: Written[] = []
  const mostBytes = mostPathBytes - target.length - 1
  for (;;) {
    const next = await entries.next().catch(endOfTooDeep)
    if (next.done === true) return { written, isIncomplete: next.value.isIncomplete }
    const { name } = next.value
    if (name.length > mostBytes && isToldAlready(name, mostBytes)) continue
    if (name.length > mostBytes) written.push(tooLong(name, mostBytes))
    else if (name.length > 0) written.push(writtenOf(next.value))
  }
}

/** Paths beyond what the worker can tell are in a folder that was told already: the failure comes when all else was listed. */
function endOfTooDeep(error: unknown): IteratorReturnResult<{ readonly isIncomplete: boolean }> {
  if (error instanceof FileFailure && error.errno === errno.ENAMETOOLONG) return { done: true, value: { isIncomplete: false } }
  throw error
}

/** With the folder that it is in. */
function isToldAlready(name: Uint8Array, mostBytes: number): boolean {
  return name.lastIndexOf(0x2f) > mostBytes
}

function tooLong(name: Uint8Array, mostBytes: number): Written {
  const path = `${pathText(name.subarray(0, toldBytes))}…`
  return { type: 'other', path, why: `its path of ${name.length} bytes is longer than ${mostBytes}` }
}

/** The mark of a folder that hides what is beneath it; a deleted path is a device without numbers. */
const opaque = 1n

function writtenOf({ name, type, mode, size, rdev, target }: WorkerEntry): Written {
  const path = pathText(name)
  if (type === 'file') return { type, path, mode, size }
  if (type === 'folder') return { type, path, mode, hides: rdev === opaque }
  if (type === 'device' && rdev === 0n) return { type: 'removed', path }
  if (type !== 'link' || target === undefined) return { type: 'other', path, why: `it is a ${type === 'fifo' ? 'FIFO' : type}` }
  return { type, path, target: pathText(target) }
}
