import { createHash, randomUUID } from 'node:crypto'
import { closeSync, constants, existsSync, openSync, readSync, renameSync } from 'node:fs'
import { mkdir, open, readdir, readFile, realpath, rename, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type AppliedChanges, type ChangeSet, changeSetSchema, type ChangeStore, type ChangeTaking, type PendingChange } from '../contract/changes.js'
import { SandboxError } from '../contract/errors.js'
import { applyTasks, writeAllSync } from './changes-apply.js'
import { compareWritten } from './changes-compare.js'
import { lockFolder, sweepLocks } from './changes-lock.js'
import { recordPath, sweepStagings } from './changes-staging.js'
import { planChanges, selectChanges } from './changes-plan.js'
import { syncFolderOf, writeDurably } from './durable.js'
import { draftIn, sweepDrafts } from './draft.js'
import { FolderWalk } from './folder-walk.js'
import { currentOwner, ownerName } from './owner.js'
import { changesPlace } from './places.js'
import { randomId } from './random-id.js'
import { sweepNames } from './sweep-names.js'
import { Sweeper } from './sweeper.js'
import { removeTree } from './tree-removal.js'

/*
 * A change set is a folder named by its id, with manifest.json and the content of each file under its SHA-256. It is made beside and renamed when it is whole.
 */

const idName = /^[a-z0-9]{20}$/
const draftName = /^draft-([^-]+)-[0-9a-f-]{36}$/

/** Nothing is touched before it is used. */
export function createChangeStore(place: () => string = changesPlace): ChangeStore {
  return {
    take: (taking) => takeChanges(place(), taking),
    list: (folder) => listSets(place(), folder),
    find: (id) => findSet(place(), id),
    newContent: (set, change, mostBytes) => readStored(contentPath(place(), set, change), mostBytes),
    oldContent: readOld,
    apply: (set, paths) => applySet({ place: place(), set, paths }),
    drop: (set) => removeTree(join(place(), set.id)),
  }
}

async function takeChanges(place: string, taking: ChangeTaking): Promise<ChangeSet | undefined> {
  const { folder, command, startedMs, written, mostBytes } = taking
  await sweepNames(place, { kind: 'changes', pattern: draftName, sweeper: new Sweeper() })
  const draft = join(place, `draft-${ownerName(currentOwner())}-${randomUUID()}`)
  await mkdir(join(draft, 'content'), { recursive: true, mode: 0o700 })
  const budget = { left: mostBytes }
  try {
    await using walk = await FolderWalk.open(folder)
    const keep = (path: string): Promise<{ hash: string; size: number }> => keepContent({ draft, path, content: taking.content(path), budget })
    const changes = await compareWritten({ walk, written, startedMs, keep, signal: taking.signal })
    const skipped = written.flatMap((entry) => (entry.type === 'other' ? [{ path: entry.path, why: entry.why }] : []))
    if (changes.length === 0 && skipped.length === 0) return undefined
    const set: ChangeSet = { version: 1, id: randomId(), folder, createdAt: new Date().toISOString(), command: [...command], changes, skipped }
    await removeUnused(draft, changes)
    writeDurably(join(draft, 'manifest.json'), JSON.stringify(set))
    await rename(draft, join(place, set.id))
    return set
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

interface Keeping {
  readonly draft: string
  readonly path: string
  readonly content: AsyncIterable<Uint8Array>
  readonly budget: { left: number }
}

async function keepContent({ draft, path, content, budget }: Keeping): Promise<{ hash: string; size: number }> {
  const hash = createHash('sha256')
  const part = join(draft, `part-${randomUUID()}`)
  const file = openSync(part, 'wx', 0o600)
  let size = 0
  try {
    for await (const bytes of content) {
      size += bytes.length
      budget.left -= bytes.length
      if (budget.left < 0) throw new SandboxError('full', `${path} and the files before it hold more than the sandbox could write: they are mostly holes`)
      hash.update(bytes)
      writeAllSync(file, bytes)
    }
  } finally {
    closeSync(file)
  }
  const digest = hash.digest('hex')
  renameSync(part, join(draft, 'content', digest))
  return { hash: digest, size }
}

/** What was written just as it was before. */
async function removeUnused(draft: string, changes: readonly PendingChange[]): Promise<void> {
  const used = new Set(changes.flatMap(({ after }) => (after.type === 'file' ? [after.hash] : [])))
  for (const name of await readdir(join(draft, 'content'))) if (!used.has(name)) await unlink(join(draft, 'content', name))
}

/** What was killed left of changes that were taken or applied; makes nothing. */
export async function sweepChanges(place: string, sweeper: Sweeper): Promise<void> {
  await sweepNames(place, { kind: 'changes', pattern: draftName, sweeper })
  for (const name of await readdir(place).catch(() => [])) if (idName.test(name)) sweepDrafts(join(place, name), sweeper)
  await sweepStagings(place, sweeper)
  await sweepLocks(place, sweeper)
}

async function listSets(place: string, folder: string | undefined): Promise<readonly ChangeSet[]> {
  const ids = (await readdir(place)).filter((name) => idName.test(name))
  const sets = await Promise.all(ids.map((id) => readSet(place, id)))
  const wanted = folder === undefined ? undefined : await realpath(folder).catch(() => folder)
  return sets
    .filter((set) => set !== undefined)
    .filter((set) => wanted === undefined || set.folder === wanted)
    .sort((one, other) => (one.createdAt < other.createdAt ? 1 : -1))
}

/** Undefined when it was dropped meanwhile. */
async function readSet(place: string, id: string): Promise<ChangeSet | undefined> {
  const text = await readFile(join(place, id, 'manifest.json'), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const parsed = changeSetSchema.safeParse(asJson(text))
  if (!parsed.success)
    throw new SandboxError('internal', `the changes ${id} cannot be read: ${parsed.error.issues[0]?.message ?? ''}`, { hint: `rm -r ${join(place, id)}` })
  return parsed.data
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function findSet(place: string, id: string): Promise<ChangeSet> {
  const found = /^[a-z0-9]{1,20}$/.test(id) ? (await listSets(place, undefined)).filter((set) => set.id.startsWith(id)) : []
  const [set, ...others] = found
  if (set === undefined) throw new SandboxError('not-found', `there are no pending changes ${id}`, { hint: 'glovebox changes' })
  if (others.length > 0) throw new SandboxError('invalid', `${found.length} change sets begin with ${id}`, { hint: 'glovebox changes' })
  return set
}

function contentPath(place: string, { id }: ChangeSet, { path, after }: PendingChange): string {
  if (after.type !== 'file') throw new SandboxError('internal', `${path} has no content`)
  return join(place, id, 'content', after.hash)
}

async function readStored(path: string, mostBytes: number): Promise<Uint8Array> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    return await readStart(handle, mostBytes)
  } finally {
    await handle.close()
  }
}

async function readOld({ folder }: ChangeSet, { path }: PendingChange, mostBytes: number): Promise<Uint8Array | undefined> {
  await using walk = await FolderWalk.open(folder)
  const step = await walk.stepTo(path)
  const status = await step?.folder.look(step.name)
  if (step === undefined || status?.isFile() !== true) return undefined
  const handle = await step.folder.openFile(step.name)
  try {
    return await readStart(handle, mostBytes)
  } finally {
    await handle.close()
  }
}

async function readStart(handle: Awaited<ReturnType<typeof open>>, mostBytes: number): Promise<Uint8Array> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(mostBytes), 0, mostBytes, 0)
  return buffer.subarray(0, bytesRead)
}

async function applySet({ place, set, paths }: { place: string; set: ChangeSet; paths: readonly string[] | undefined }): Promise<AppliedChanges> {
  using _lock = lockFolder(place, set.folder)
  // Another apply may have been faster.
  const current = await findSet(place, set.id)
  const chosen = paths === undefined ? current.changes : selectChanges(current, paths)
  await using walk = await openFolder(current)
  const [at, mark] = [join(place, set.id), join(place, set.id, 'applying')]
  const tasks = await planChanges({ walk, changes: chosen, isResumed: existsSync(mark) })
  const content = (hash: string): Iterable<Uint8Array> => checkedContent(join(at, 'content', hash), hash)
  const begin = (): Promise<void> => makeMark(mark)
  if (tasks.length > 0) await applyTasks({ id: set.id, folder: set.folder, walk, tasks, record: recordPath(place, set.folder), begin, content })
  const taken = new Set(chosen)
  const left = current.changes.filter((change) => !taken.has(change))
  if (left.length === 0) await removeTree(at)
  else {
    await replaceManifest(place, { ...current, changes: left })
    await rm(mark, { force: true })
  }
  return { applied: chosen.map(({ path }) => path), left: left.length }
}

async function openFolder({ id, folder }: ChangeSet): Promise<FolderWalk> {
  const path = await realpath(folder).catch(() => undefined)
  if (path === folder) return FolderWalk.open(folder)
  const why = path === undefined ? 'is gone' : `leads to ${path} by now`
  throw new SandboxError('conflict', `nothing was applied: ${folder} ${why}`, { hint: `glovebox drop ${id}` })
}

async function replaceManifest(place: string, set: ChangeSet): Promise<void> {
  const draft = draftIn(join(place, set.id))
  writeDurably(draft, JSON.stringify(set))
  await rename(draft, join(place, set.id, 'manifest.json'))
}

/** What an apply that is stopped leaves halfway would look like somebody else's change to a next one that does not know of it. */
async function makeMark(mark: string): Promise<void> {
  if (!existsSync(mark)) writeDurably(mark, '')
  await syncFolderOf(mark)
}

/** Throws once all was read when it is not what was stored. */
function* checkedContent(path: string, wanted: string): Iterable<Uint8Array> {
  const hash = createHash('sha256')
  const chunk = Buffer.allocUnsafe(2 ** 16)
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    for (let read = readSync(file, chunk); read > 0; read = readSync(file, chunk)) {
      hash.update(chunk.subarray(0, read))
      yield chunk.subarray(0, read)
    }
  } finally {
    closeSync(file)
  }
  if (hash.digest('hex') !== wanted) throw new SandboxError('internal', `${path} is not what was stored`)
}
