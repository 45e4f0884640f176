/** A snapshot while it is written: in a folder of its own, which takes its place as a whole or not at all. */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import type { Faults } from '../contract/faults.js'
import type { ManifestEntry, SnapshotDraft, StoredSnapshot } from '../contract/snapshot-store.js'
import type { SnapshotInfo } from '../contract/snapshots.js'
import { folderError } from '../sys/folder-error.js'
import { HashedFile, syncFolder } from './snapshots-file.js'
import { manifestHead, manifestLine } from './snapshots-manifest.js'
import { type About, isWholeObject, objectFiles, storedSnapshot } from './snapshots-object.js'

const pageBytes = 4096
const mostTries = 5

export interface DraftPlaces {
  /** Of this draft alone; not there yet. */
  readonly folder: string
  readonly objects: string
  /** Points the name at the object. Resolves to false when the object is gone. */
  point(name: string, id: string): Promise<boolean>
  readonly faults?: Faults | undefined
}

/** What a snapshot is of. */
export interface DraftOrigin {
  readonly template: string
  readonly templateId: string | undefined
}

export async function createDraft(origin: DraftOrigin, places: DraftPlaces): Promise<SnapshotDraft> {
  const { folder } = places
  return guarded(folder, async () => {
    await mkdir(folder, { mode: 0o700 })
    const manifest = await HashedFile.create(join(folder, objectFiles.manifest))
    const archive = await HashedFile.create(join(folder, objectFiles.archive))
    await manifest.write(Buffer.from(manifestHead(origin)))
    return new Draft({ origin, places, manifest, archive })
  })
}

interface DraftParts {
  readonly origin: DraftOrigin
  readonly places: DraftPlaces
  readonly manifest: HashedFile
  readonly archive: HashedFile
}

class Draft implements SnapshotDraft {
  readonly #parts: DraftParts
  #counts = { bytes: 0, diskBytes: 0, largestFileBytes: 0, entries: 0 }
  #sealed: StoredSnapshot | undefined
  #isKept = false

  constructor(parts: DraftParts) {
    this.#parts = parts
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#guarded(() => this.#parts.archive.write(bytes))
  }

  async add(entry: ManifestEntry): Promise<void> {
    const { bytes, diskBytes, largestFileBytes, entries } = this.#counts
    // Another name of the same file holds nothing of its own.
    const size = entry.type === 'file' && entry.sameAs === '' ? entry.size : 0
    this.#counts = {
      bytes: bytes + size,
      diskBytes: diskBytes + Math.ceil(size / pageBytes) * pageBytes,
      largestFileBytes: Math.max(largestFileBytes, size),
      entries: entries + 1,
    }
    await this.#guarded(() => this.#parts.manifest.write(Buffer.from(manifestLine(entry))))
  }

  async seal(): Promise<StoredSnapshot> {
    const { origin, places, manifest, archive } = this.#parts
    const { template, templateId } = origin
    this.#sealed ??= await this.#guarded(async () => {
      const id = `sha256:${await manifest.finish()}`
      const about: About = {
        template,
        ...(templateId !== undefined && { templateId }),
        createdAt: new Date().toISOString(),
        ...this.#counts,
        archive: await archive.finish(),
      }
      places.faults?.('snapshot/written')
      await writeFile(join(places.folder, objectFiles.about), `${JSON.stringify(about)}\n`, { mode: 0o400, flag: 'wx', flush: true })
      await syncFolder(places.folder)
      places.faults?.('snapshot/sealed')
      return storedSnapshot({ folder: places.folder, id }, about)
    })
    return this.#sealed
  }

  async keep(name: string | undefined): Promise<SnapshotInfo> {
    const { info } = await this.seal()
    const { places } = this.#parts
    await this.#guarded(async () => {
      // Whoever removes the same snapshot meanwhile takes it away once or twice, hardly more often.
      for (let tries = 0; tries < mostTries; tries += 1) {
        await this.#place(info.id)
        places.faults?.('snapshot/placed')
        if (name === undefined || (await places.point(name, info.id))) return
        if (this.#isKept) break
      }
      throw new SandboxError('conflict', `snapshot ${info.id} was removed while it was kept`)
    }).catch(async (error: unknown) => {
      await this.#takeBack(info.id)
      throw error
    })
    return name === undefined ? info : { ...info, name }
  }

  /** What was placed and has no name that it was to have is nobody's. */
  async #takeBack(id: string): Promise<void> {
    const { folder, objects } = this.#parts.places
    if (this.#isKept) await rename(join(objects, id.replace('sha256:', '')), folder).catch(() => undefined)
    this.#isKept = false
  }

  async discard(): Promise<void> {
    const { places, manifest, archive } = this.#parts
    if (!this.#sealed) await Promise.all([manifest.abandon().catch(() => undefined), archive.abandon().catch(() => undefined)])
    await rm(places.folder, { recursive: true, force: true })
  }

  /** When the same content is there already, that one stays, and this draft is there to be discarded; unless it is damaged, and of no use to anyone. */
  async #place(id: string): Promise<void> {
    const { folder, objects } = this.#parts.places
    const object = join(objects, id.replace('sha256:', ''))
    this.#isKept = (await moveInto(folder, object)) || (!(await isWholeObject({ folder: object, id })) && (await takePlaceOf(folder, object)))
    if (this.#isKept) await syncFolder(objects)
  }

  #guarded<T>(act: () => Promise<T>): Promise<T> {
    return guarded(this.#parts.places.folder, act)
  }
}

/** False when something is there. */
async function moveInto(folder: string, object: string): Promise<boolean> {
  try {
    await rename(folder, object)
    return true
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

/** What is there goes among the drafts first, as a whole. False when another was faster. */
async function takePlaceOf(folder: string, object: string): Promise<boolean> {
  const grave = `${folder}-damaged`
  try {
    await rename(object, grave).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    })
    return await moveInto(folder, object)
  } finally {
    await rm(grave, { recursive: true, force: true })
  }
}

async function guarded<T>(folder: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    throw error instanceof SandboxError ? error : folderError(folder, error)
  }
}
