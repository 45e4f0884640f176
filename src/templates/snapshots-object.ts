/** One snapshot as it lies on the disk: a folder with a manifest, an archive, and a few facts about both. */
import { lstat, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { deferred } from '../contract/deferred.js'
import { SandboxError } from '../contract/errors.js'
import type { ManifestEntry, StoredSnapshot } from '../contract/snapshot-store.js'
import { templateIdSchema } from '../contract/templates.js'
import { manifestHead, parseManifestLine } from './snapshots-manifest.js'
import { readHashed } from './snapshots-file.js'

const countSchema = z.int().min(0)

const aboutSchema = deferred(() =>
  z.strictObject({
    template: z.string(),
    templateId: templateIdSchema.optional(),
    createdAt: z.iso.datetime(),
    bytes: countSchema,
    diskBytes: countSchema,
    largestFileBytes: countSchema,
    entries: countSchema,
    /** SHA-256 of the archive, which the id does not cover: it has times. */
    archive: z.string().regex(/^[0-9a-f]{64}$/),
  }),
)

export type About = z.output<typeof aboutSchema>

export const objectFiles = { manifest: 'manifest', archive: 'archive.tar', about: 'about.json' } as const

export interface ObjectPlace {
  readonly folder: string
  readonly id: string
  readonly name?: string
}

/** Undefined when there is none. Throws SandboxError('broken') when its facts cannot be read. */
export async function readObject(place: ObjectPlace): Promise<StoredSnapshot | undefined> {
  const { folder, id } = place
  const there = await identityOf(folder)
  if (there === undefined) return undefined
  const text = await readFile(join(folder, objectFiles.about), 'utf8').catch(async (error: unknown) => {
    // Others remove it, and keep it again, as a whole.
    if ((await identityOf(folder)) === there) throw damaged(id, error)
    return undefined
  })
  return text === undefined ? readObject(place) : storedSnapshot(place, parseAbout(id, text))
}

/** Of the very folder that is there now; undefined when there is none. */
async function identityOf(folder: string): Promise<string | undefined> {
  const status = await lstat(folder).catch(() => undefined)
  return status && `${status.dev}:${status.ino}`
}

/** Whether all of it is there as it was kept. */
export async function isWholeObject(place: ObjectPlace): Promise<boolean> {
  try {
    const stored = await readObject(place)
    await stored?.check()
    for await (const _ of stored?.archive() ?? []);
    return stored !== undefined
  } catch {
    return false
  }
}

export function storedSnapshot({ folder, id, name }: ObjectPlace, about: About): StoredSnapshot {
  const { template, templateId, createdAt, bytes, entries, diskBytes, largestFileBytes } = about
  const broken = (cause?: unknown): SandboxError => damaged(id, cause)
  const manifest = (): AsyncIterable<Uint8Array> => readHashed(join(folder, objectFiles.manifest), id.replace('sha256:', ''), broken)
  const manifestLines = (): AsyncIterable<string> => entryLines(manifest(), about, broken)
  return {
    info: { id, ...(name !== undefined && { name }), template, ...(templateId !== undefined && { templateId }), createdAt, bytes, entries },
    needs: { diskBytes, largestFileBytes, entries },
    check: async () => {
      for await (const _ of manifestLines());
    },
    entries: async function* () {
      for await (const line of manifestLines()) yield parseEntry(line, broken)
    },
    archive: () => readHashed(join(folder, objectFiles.archive), about.archive, broken),
  }
}

function parseAbout(id: string, text: string): About {
  try {
    return aboutSchema.parse(JSON.parse(text))
  } catch (error) {
    throw damaged(id, error)
  }
}

/** A line for each entry. Throws when the manifest is of something else. */
async function* entryLines(
  bytes: AsyncIterable<Uint8Array>,
  { template, templateId, entries }: About,
  broken: (cause?: unknown) => SandboxError,
): AsyncGenerator<string, void, undefined> {
  let count = -1
  for await (const line of linesOf(bytes)) {
    count += 1
    if (count > 0) yield line
    else if (`${line}\n` !== manifestHead({ template, templateId })) throw broken()
  }
  if (count !== entries) throw broken()
}

function parseEntry(line: string, broken: (cause?: unknown) => SandboxError): ManifestEntry {
  try {
    return parseManifestLine(line)
  } catch (error) {
    throw broken(error)
  }
}

async function* linesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  let rest = Buffer.alloc(0)
  for await (const bytes of source) {
    rest = Buffer.concat([rest, bytes])
    for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
      yield rest.toString('utf8', 0, end)
      rest = rest.subarray(end + 1)
    }
  }
}

/** It is never used: what is not what it was is nobody's snapshot. */
function damaged(id: string, cause?: unknown): SandboxError {
  return new SandboxError('broken', `snapshot ${id} is damaged: it is not what was kept`, { hint: `glovebox snapshots remove ${id}`, cause })
}
