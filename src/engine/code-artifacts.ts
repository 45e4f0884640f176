/**
 * Which files of the workspace an execution made or changed: they are listed before and after, and compared by what no program can set back: inode and time of
 * change, beside size and time of modification. What other programs do meanwhile is told as well; nobody can tell one from the other.
 */
import type { Artifact, CodeEnding } from '../contract/code.js'
import type { WorkerEntry } from '../channel/index.js'
import { bytesInUnits } from '../contract/quantities.js'
import type { ArtifactWatch } from '../interpreter/index.js'
import { mimeByContent, mimeByName, signatureBytes } from './code-mime.js'
import { below, placeOf } from './file-entry.js'
import { FileOperation, type FilesHost, type OperationOrder } from './file-operation.js'

const mostEntries = 10_000
const mostArtifacts = 1000
/** Of all that are told of one execution: they are read for their hash. */
const mostHashedBytes = 2 * 2 ** 30
/** For one look at the whole workspace. */
const lookMs = 5000
/** For reading all that were found: they may grow meanwhile. */
const readMs = 10_000
/** For so long a workspace that is too large is not looked at again. */
const restMs = 10_000
const everyDepth = 2 ** 32 - 1

export interface WorkspaceOrder {
  /** As it is now. Throws while there is none. */
  readonly host: () => FilesHost
  /** Absolute. */
  readonly folder: () => string
}

type Listing = ReadonlyMap<string, WorkerEntry>
type Told = Pick<CodeEnding, 'artifacts' | 'artifactsMissing'>

/** Why a look says nothing. */
class NoLook extends Error {}

export class Workspace implements ArtifactWatch {
  readonly #order: WorkspaceOrder
  #resting: { readonly until: number; readonly why: string } | undefined

  constructor(order: WorkspaceOrder) {
    this.#order = order
  }

  async begin(): Promise<{ end(): Promise<Told> }> {
    try {
      const before = await this.#look()
      return { end: () => this.#compare(before).catch(missing) }
    } catch (error) {
      const told = missing(error)
      return { end: () => Promise.resolve(told) }
    }
  }

  async #compare(before: Listing): Promise<Told> {
    const after = await this.#look()
    const touched = [...after].filter(([name, entry]) => isTouched(before.get(name), entry))
    const artifacts: Artifact[] = []
    const lacks = new Set<string>()
    let hashedBytes = 0
    const late = AbortSignal.timeout(readMs)
    const isLate = (): boolean => late.aborted
    for (const [name, entry] of touched) {
      if (isLate()) break
      if (artifacts.length >= mostArtifacts) lacks.add(`more than ${mostArtifacts} files were created or changed`)
      else if (hashedBytes + entry.size > mostHashedBytes) lacks.add(`the files have more than ${bytesInUnits(mostHashedBytes, Math.floor)} together`)
      else {
        hashedBytes += entry.size
        const artifact = await this.#artifact(entry, { change: before.has(name) ? 'changed' : 'created', signal: late }).catch(() => undefined)
        if (artifact) artifacts.push(artifact)
        else if (!isLate()) lacks.add('a file could not be read, or its name is no text')
      }
    }
    if (isLate()) lacks.add(`the files could not be read within ${readMs / 1000} s`)
    return { artifacts, ...(lacks.size > 0 && { artifactsMissing: [...lacks].join('; ') }) }
  }

  /** Undefined for one whose name cannot be told, or that is gone. */
  async #artifact(
    entry: WorkerEntry,
    { change, signal }: { readonly change: Artifact['change']; readonly signal: AbortSignal },
  ): Promise<Artifact | undefined> {
    const bytes = below(new TextEncoder().encode(this.#order.folder()), entry.name)
    const { path, pathBytes } = placeOf(bytes)
    if (pathBytes) return undefined
    const order = { ...this.#operation(bytes), signal }
    const now = await FileOperation.run(order, ({ client }) => client.stat(bytes, { hash: true }))
    if (!now.hash) return undefined
    const mime = mimeByName(path) ?? mimeByContent(await firstBytes(order, bytes))
    return { path, change, size: now.size, mime, hash: Buffer.from(now.hash).toString('hex') }
  }

  async #look(): Promise<Listing> {
    if (this.#resting && performance.now() < this.#resting.until) throw new NoLook(this.#resting.why)
    this.#resting = undefined
    try {
      return await this.#list()
    } catch (error) {
      if (error instanceof NoLook) this.#resting = { until: performance.now() + restMs, why: error.message }
      throw error
    }
  }

  async #list(): Promise<Listing> {
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(new NoLook(`the workspace could not be looked over within ${lookMs / 1000} s`)), lookMs)
    timer.unref()
    const folder = new TextEncoder().encode(this.#order.folder())
    try {
      const operation = await FileOperation.begin({ ...this.#operation(folder), signal: late.signal })
      const files = new Map<string, WorkerEntry>()
      let seen = 0
      for await (const entry of operation.stream(operation.worker.client.list(folder, { depth: everyDepth, hidden: true }))) {
        seen += 1
        if (seen > mostEntries) throw new NoLook(`the workspace has more than ${mostEntries} files and folders`)
        if (entry.type === 'file') files.set(Buffer.from(entry.name).toString('latin1'), entry)
      }
      return files
    } finally {
      clearTimeout(timer)
    }
  }

  #operation(path: Uint8Array): OperationOrder {
    const host = this.#order.host()
    return { host, call: { name: 'code', path }, user: host.defaultUser, signal: undefined }
  }
}

function missing(error: unknown): Told {
  return { artifacts: [], artifactsMissing: error instanceof Error ? error.message : 'the workspace could not be looked over' }
}

function isTouched(before: WorkerEntry | undefined, after: WorkerEntry): boolean {
  if (!before) return true
  return (
    before.ino !== after.ino ||
    before.dev !== after.dev ||
    before.size !== after.size ||
    before.modifiedNs !== after.modifiedNs ||
    before.changedNs !== after.changedNs
  )
}

async function all<T>(pieces: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const piece of pieces) found.push(piece)
  return found
}

async function firstBytes(order: OperationOrder, path: Uint8Array): Promise<Uint8Array> {
  const { operation, answer } = await FileOperation.open(order, ({ client }) => client.read(path, { offset: 0, length: signatureBytes }))
  return Buffer.concat(await all(operation.stream(answer.bytes)))
}
