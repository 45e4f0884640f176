/** One snapshot as it lies on the disk: a folder with a manifest, an archive, and a few facts about both. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { SandboxError } from '../contract/errors.js'
import type { ManifestEntry, StoredSnapshot } from '../contract/snapshot-store.js'
import { manifestHead, parseManifestLine } from './snapshots-manifest.js'
import { readHashed } from './snapshots-file.js'

const countSchema = z.int().min(0)

const aboutSchema = z.strictObject({
  template: z.string(),
  createdAt: z.iso.datetime(),
  bytes: countSchema,
  diskBytes: countSchema,
  largestFileBytes: countSchema,
  entries: countSchema,
  /** SHA-256 of the archive, which the id does not cover: it has times. */
  archive: z.string().regex(/^[0-9a-f]{64}$/),
})

export type About = z.output<typeof aboutSchema>

export const objectFiles = { manifest: 'manifest', archive: 'archive.tar', about: 'about.json' } as const

export interface ObjectPlace {
  readonly folder: string
  readonly id: string
  readonly name?: string
}

/** Undefined when there is none. Throws SandboxError('broken') when its facts cannot be read. */
export async function readObject({ folder, id, name }: ObjectPlace): Promise<StoredSnapshot | undefined> {
  const text = await readFile(join(folder, objectFiles.about), 'utf8').catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw damaged(id, error)
  })
  return text === undefined ? undefined : storedSnapshot({ folder, id, ...(name !== undefined && { name }) }, parseAbout(id, text))
}

export function storedSnapshot({ folder, id, name }: ObjectPlace, about: About): StoredSnapshot {
  const { template, createdAt, bytes, entries, diskBytes, largestFileBytes } = about
  const broken = (cause?: unknown): SandboxError => damaged(id, cause)
  return {
    info: { id, ...(name !== undefined && { name }), template, createdAt, bytes, entries },
    needs: { diskBytes, largestFileBytes, entries },
    entries: () => entriesOf(readHashed(join(folder, objectFiles.manifest), id.replace('sha256:', ''), broken), about, broken),
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

async function* entriesOf(
  bytes: AsyncIterable<Uint8Array>,
  { template, entries }: About,
  broken: (cause?: unknown) => SandboxError,
): AsyncGenerator<ManifestEntry, void, undefined> {
  let count = -1
  for await (const line of linesOf(bytes)) {
    count += 1
    if (count > 0) yield parseEntry(line, broken)
    else if (`${line}\n` !== manifestHead(template)) throw broken()
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
