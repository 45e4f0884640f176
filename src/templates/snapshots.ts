/**
 * Where snapshots are kept. Below one folder that is only ours: `drafts`, a folder for each that is being written; `objects`, a folder for each that is whole,
 * called by its id; `names`. A draft becomes an object by one rename after all of it is on the disk, and an object goes by one rename back among the drafts, so
 * that nobody ever sees half of one. What a writer that was killed left is swept by the next.
 */
import { randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import type { Faults } from '../contract/faults.js'
import type { SnapshotStore, StoredSnapshot } from '../contract/snapshot-store.js'
import type { SnapshotInfo } from '../contract/snapshots.js'
import { folderError, writingTo } from '../sys/folder-error.js'
import { sweepDrafts } from '../sys/draft.js'
import { currentBoot, currentOwner, ownerName, parseOwner } from '../sys/owner.js'
import { snapshotPlace } from '../sys/places.js'
import { Sweeper } from '../sys/sweeper.js'
import { createDraft } from './snapshots-draft.js'
import { listNames, readName, removeName, writeName } from './snapshots-names.js'
import { readObject } from './snapshots-object.js'

/** Longer than a snapshot is written: of those of another boot, which may be another machine's, only time tells. */
const forgottenMs = 24 * 3_600_000

/** Of folders within a store that are stores of tenants. */
export const tenantPrefix = 'tenant-'

interface Places {
  readonly top: string
  readonly drafts: string
  readonly objects: string
  readonly names: string
}

/** Nothing is touched before it is used. `folder` is asked for then; nobody else may write to it. */
export function createSnapshotStore(folder: () => string = snapshotPlace, faults?: Faults): SnapshotStore {
  const places = (): Places => placesBelow(folder())
  return {
    draft: async (template, templateId) => {
      const { top, drafts, objects, names } = places()
      await sweep(top, drafts)
      return createDraft({ template, templateId }, { folder: newDraft(drafts), objects, point: (name, id) => point({ names, objects }, name, id), faults })
    },
    find: (reference) => find(places(), reference),
    list: () => list(places()),
    remove: (reference) => remove(places(), reference),
  }
}

function placesBelow(top: string): Places {
  const place = (name: string): string => makeFolder(top, join(top, name))
  makeFolder(top, top)
  return { top, drafts: place('drafts'), objects: place('objects'), names: place('names') }
}

/** Only the last one: a recursive mkdir below /proc never returns. */
function makeFolder(top: string, folder: string): string {
  return writingTo(top, () => {
    try {
      mkdirSync(folder, { mode: 0o700 })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    return folder
  })
}

function newDraft(drafts: string): string {
  return join(drafts, `${ownerName(currentOwner())}-${randomUUID()}`)
}

async function point({ names, objects }: Pick<Places, 'names' | 'objects'>, name: string, id: string): Promise<boolean> {
  await writeName(names, { name, id })
  return (await readObject({ folder: objectFolder(objects, id), id })) !== undefined
}

async function find({ objects, names }: Places, reference: string): Promise<StoredSnapshot | undefined> {
  if (reference.startsWith('sha256:')) return readObject({ folder: objectFolder(objects, reference), id: reference })
  const named = await readName(names, reference)
  return named && readObject({ folder: objectFolder(objects, named.id), id: named.id, name: named.name })
}

/** A damaged one is told of too, so that it can be removed. */
async function list({ objects, names }: Places): Promise<SnapshotInfo[]> {
  const named = await listNames(names)
  const ids = (await readdir(objects)).filter((file) => /^[0-9a-f]{64}$/.test(file)).map((file) => `sha256:${file}`)
  const rows = await Promise.all(
    ids.map(async (id) => {
      const stored = await readObject({ folder: objectFolder(objects, id), id }).catch((error: unknown) => error)
      const info = stored instanceof SandboxError ? unreadable(id) : (stored as StoredSnapshot | undefined)?.info
      const own = named.filter((each) => each.id === id).map(({ name }) => name)
      if (info === undefined) return []
      return own.length === 0 ? [info] : own.map((name) => ({ ...info, name }))
    }),
  )
  return rows.flat().sort((left, right) => order(left, right))
}

function order(left: SnapshotInfo, right: SnapshotInfo): number {
  const keys = (info: SnapshotInfo): string => `${info.createdAt} ${info.id} ${info.name ?? ''}`
  return keys(left) < keys(right) ? -1 : 1
}

function unreadable(id: string): SnapshotInfo {
  return { id, template: '', createdAt: new Date(0).toISOString(), bytes: 0, entries: 0 }
}

async function remove({ top, drafts, objects, names }: Places, reference: string): Promise<boolean> {
  const id = reference.startsWith('sha256:') ? reference : (await readName(names, reference))?.id
  if (id === undefined) return false
  // First out of everybody's sight as a whole, then piece by piece.
  const grave = newDraft(drafts)
  const isThere = await rename(objectFolder(objects, id), grave).then(
    () => true,
    (error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
      throw folderError(top, error)
    },
  )
  for (const { name, id: named } of await listNames(names)) if (named === id) await removeName(names, name)
  await rm(grave, { recursive: true, force: true })
  return isThere
}

function objectFolder(objects: string, id: string): string {
  return join(objects, id.replace('sha256:', ''))
}

/** What writers that were killed left in a store and in those within it, of which there may be none; nothing is made. */
export async function sweepSnapshots(folder: string, sweeper = new Sweeper()): Promise<void> {
  const within = await readdir(folder, { withFileTypes: true }).catch(() => [])
  if (within.some(({ name }) => name === 'drafts')) await sweep(folder, join(folder, 'drafts'), sweeper)
  if (within.some(({ name }) => name === 'names')) sweepDrafts(join(folder, 'names'), sweeper)
  const stores = within.filter((entry) => entry.isDirectory() && entry.name.startsWith(tenantPrefix))
  for (const { name } of stores) await sweepSnapshots(join(folder, name), sweeper)
}

/** What cannot be looked at or removed stays: it is in nobody's way. */
async function sweep(top: string, drafts: string, sweeper = new Sweeper()): Promise<void> {
  for (const name of await readdir(drafts).catch((error: unknown) => Promise.reject(folderError(top, error)))) {
    const path = join(drafts, name)
    const owner = name.split('-')[0] ?? ''
    if (await isOfHere(path, owner)) await sweeper.attemptSlowly({ kind: 'snapshot', what: path, owner }, () => rm(path, { recursive: true }))
  }
}

async function isOfHere(path: string, name: string): Promise<boolean> {
  const boot = parseOwner(name)?.boot
  if (boot === undefined || boot === currentBoot()) return boot !== undefined
  const status = await stat(path).catch(() => undefined)
  return status !== undefined && Date.now() - status.mtimeMs > forgottenMs
}
