/**
 * Where built templates are kept. Below one folder that is only ours: `drafts`, a folder for each that is being built; `objects`, a folder for each that is whole, called
 * by its id, with `root`, `manifest` and `record.json`; `names`; `uses`, a file for each sandbox; `packages`, `blobs`, what was downloaded; `steps`, what a step of a Dockerfile made. A draft becomes an object by one
 * rename, and an object goes by one rename back among the drafts, so that nobody ever sees half of one. What a builder that was killed left is swept by the next.
 */
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { readdir, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import type { TemplateDifference, TemplateInfo, TemplateListing } from '../contract/templates.js'
import { lockFolder } from '../sys/changes-lock.js'
import { folderError, writingTo } from '../sys/folder-error.js'
import { currentOwner, ownerName } from '../sys/owner.js'
import { templateFolder, templatePlace } from '../sys/places.js'
import { ownerFirst, sweepNames } from '../sys/sweep-names.js'
import { Sweeper } from '../sys/sweeper.js'
import { removeTree } from '../sys/tree-removal.js'
import { compareTree, hasDefaults, manifestId, type WalkOptions } from './manifest.js'
import { damagedNote, readRecord, type StoredTemplate } from './record.js'
import { sealOf } from './seal.js'
import { cellsUsing, holdObject } from './uses.js'

export const namePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/

/** `folder` may be asked for at any time; nobody else may write to it. */
export class TemplateStore {
  readonly #place: () => string
  readonly #peek: () => string

  constructor(folder?: string) {
    this.#place = folder === undefined ? templatePlace : () => folder
    this.#peek = folder === undefined ? () => templateFolder() : () => folder
  }

  /** Where a part of the store is; made when it is not there. */
  part(name: 'drafts' | 'objects' | 'names' | 'uses' | 'packages' | 'blobs' | 'steps'): string {
    const top = this.#place()
    return writingTo(top, () => {
      for (const folder of [top, join(top, name)]) makeFolder(folder)
      return join(top, name)
    })
  }

  /** Undefined when there is none of this name. What is not whole is 'broken'. */
  find(name: string): StoredTemplate | undefined {
    const id = this.#idOf(name)
    return id === undefined ? undefined : readRecord({ name, id, object: this.#object(id) })
  }

  /** The same, looked at; from now on the sandbox uses it. */
  hold(template: StoredTemplate, cellId: string): Disposable {
    const held = holdObject(join(this.part('uses'), hexOf(template.info.id)), cellId)
    if (existsSync(template.object)) return held
    held[Symbol.dispose]()
    throw new SandboxError('conflict', `template ${template.info.name} was removed meanwhile`, { hint: `glovebox template build ${template.info.name}` })
  }

  async names(): Promise<string[]> {
    const files = await readdir(join(this.#peek(), 'names')).catch(() => [])
    return files.filter((file) => namePattern.test(file)).sort()
  }

  async list(): Promise<TemplateListing[]> {
    return (await this.names()).flatMap((name) => {
      const listing = this.listing(name)
      return listing === undefined ? [] : [listing]
    })
  }

  listing(name: string): TemplateListing | undefined {
    const id = this.#idOf(name)
    if (id === undefined) return undefined
    const object = this.#object(id)
    const usedBy = cellsUsing(join(this.#peek(), 'uses', hexOf(id)))
    try {
      const { info } = readRecord({ name, id, object })
      const damaged = damageOf(object)
      return { ...info, usedBy, ...(damaged !== undefined && { damaged }) }
    } catch (error) {
      return { ...unreadable(name, id), usedBy, damaged: (error as Error).message }
    }
  }

  /** Reads all of it. Whole: it is used again. Not whole: it is used no more until it is built again. */
  async verify(name: string, options: WalkOptions = {}): Promise<TemplateDifference[]> {
    const stored = this.find(name)
    if (stored === undefined) throw notThere(name)
    const { object, info } = stored
    const manifest = await readFile(join(object, 'manifest'), 'utf8').catch(() => '')
    const differences = manifestId(manifest) === info.id ? await compareTree(join(object, 'root'), manifest, options) : [wrong('the manifest')]
    if (manifest !== '' && !hasDefaults(manifest, info)) differences.push(wrong('the record'))
    await (differences.length === 0 ? seal(object) : writeFile(join(object, damagedNote), `${differences[0]?.path} ${differences[0]?.what}\n`, { mode: 0o600 }))
    return differences
  }

  newDraft(): string {
    const draft = join(this.part('drafts'), `${ownerName(currentOwner())}-${randomUUID()}`)
    return writingTo(this.#place(), () => {
      mkdirSync(draft, { mode: 0o700 })
      return draft
    })
  }

  /** One builder at a time. Throws 'busy'. */
  lock(): Disposable {
    const top = this.#place()
    return lockFolder(top, top, () => new SandboxError('busy', 'another build is under way here', { hint: 'glovebox template ls' }))
  }

  /** A finished draft takes its place and its name; what had the name goes, unless a sandbox uses it. */
  async publish(name: string, draft: string, info: TemplateInfo): Promise<void> {
    const object = join(this.part('objects'), hexOf(info.id))
    try {
      if (!existsSync(object) || damageOf(object) !== undefined) {
        if (existsSync(object)) await this.#bury(object)
        await rename(draft, object)
      }
      const pointer = join(this.part('drafts'), `${ownerName(currentOwner())}-${randomUUID()}`)
      await writeFile(pointer, `${info.id}\n`, { mode: 0o600, flag: 'wx', flush: true })
      await rename(pointer, join(this.part('names'), name))
    } catch (error) {
      throw error instanceof SandboxError ? error : folderError(this.#place(), error)
    }
    await this.sweep()
  }

  /** False when there was none. Throws 'conflict' while a sandbox uses it. */
  async remove(name: string): Promise<boolean> {
    const id = this.#idOf(name)
    if (id === undefined) return false
    const uses = join(this.#peek(), 'uses', hexOf(id))
    refuseUsed(name, cellsUsing(uses))
    const others = (await this.names()).filter((other) => other !== name && this.#idOf(other) === id)
    const object = this.#object(id)
    if (others.length === 0 && existsSync(object)) {
      const grave = this.#grave()
      await rename(object, grave)
      const late = cellsUsing(uses)
      if (late.length > 0) await rename(grave, object)
      refuseUsed(name, late)
      await unlink(join(this.#peek(), 'names', name))
      await removeTree(grave)
    } else await unlink(join(this.#peek(), 'names', name))
    return true
  }

  /** Removes what killed builders left, and objects without a name that no sandbox uses. */
  async sweep(): Promise<void> {
    await sweepNames(this.part('drafts'), { kind: 'template', pattern: ownerFirst, sweeper: new Sweeper() })
    for (const object of await this.unnamed()) await this.#bury(object).catch(() => undefined)
  }

  /** Objects without a name that no sandbox uses. */
  async unnamed(): Promise<string[]> {
    const named = new Set((await this.names()).map((name) => hexOf(this.#idOf(name) ?? '')))
    const all = await readdir(this.part('objects'))
    const left = all.filter((hex) => !named.has(hex) && cellsUsing(join(this.part('uses'), hex)).length === 0)
    return left.map((hex) => join(this.part('objects'), hex))
  }

  async #bury(object: string): Promise<void> {
    const grave = this.#grave()
    await rename(object, grave)
    await removeTree(grave)
  }

  #grave(): string {
    return join(this.part('drafts'), `${ownerName(currentOwner())}-${randomUUID()}`)
  }

  #object(id: string): string {
    return join(this.#peek(), 'objects', hexOf(id))
  }

  #idOf(name: string): string | undefined {
    if (!namePattern.test(name)) return undefined
    const file = join(this.#peek(), 'names', name)
    // What is not there is asked for with every run of a template that is none of the store's: an error each time would take longer than all else here.
    if (!existsSync(file)) return undefined
    try {
      const id = readFileSync(file, 'utf8').trim()
      return /^sha256:[0-9a-f]{64}$/.test(id) ? id : undefined
    } catch {
      return undefined
    }
  }
}

/** From now on it is known to be whole. */
export async function seal(object: string): Promise<void> {
  const text = sealOf(object)
  if (text === undefined) throw new SandboxError('broken', `${object} belongs to somebody else, or can be written by others`, { hint: `ls -la ${object}` })
  await writeFile(join(object, 'seal'), text, { mode: 0o600 })
  await rm(join(object, damagedNote), { force: true })
}

/** In words; undefined when it may be used. */
export function damageOf(object: string): string | undefined {
  const said = quietRead(join(object, damagedNote))
  if (said !== undefined) return said.trim()
  const sealed = quietRead(join(object, 'seal'))
  return sealed !== undefined && sealed === sealOf(object) ? undefined : 'something in it was changed, added or removed since it was built'
}

export function notThere(name: string): SandboxError {
  return new SandboxError('not-found', `there is no template ${name} here`, { hint: 'glovebox template ls' })
}

function wrong(path: string): TemplateDifference {
  return { path, what: 'is not what the id says' }
}

function refuseUsed(name: string, cells: readonly string[]): void {
  if (cells.length === 0) return
  const who = cells.length === 1 ? `sandbox ${cells[0]} uses` : `${cells.length} sandboxes use`
  throw new SandboxError('conflict', `template ${name} cannot be removed: ${who} it`, { hint: `glovebox template inspect ${name}` })
}

function unreadable(name: string, id: string): TemplateInfo {
  const nothing = { bytes: 0, entries: 0, shell: '', env: {}, system: '', arch: '', packages: [], inputs: '' }
  return { name, id, recipe: '', summary: '', builtAt: new Date(0).toISOString(), ...nothing }
}

function quietRead(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function hexOf(id: string): string {
  return id.replace('sha256:', '')
}
