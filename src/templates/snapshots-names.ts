/** Names of snapshots: a small file each, called by the name's hash, so that any text can be a name. */
import { createHash } from 'node:crypto'
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { deferred } from '../contract/deferred.js'
import { snapshotIdSchema, snapshotNameSchema } from '../contract/snapshots.js'
import { draftIn, sweepDrafts } from '../sys/draft.js'
import { syncFolder } from './snapshots-file.js'

const nameSchema = deferred(() => z.strictObject({ name: snapshotNameSchema, id: snapshotIdSchema }))

export type NamedSnapshot = z.output<typeof nameSchema>

/** Undefined when nothing has this name. A file that says something else than it should is no name. */
export async function readName(folder: string, name: string): Promise<NamedSnapshot | undefined> {
  const found = await readNameFile(pathOf(folder, name))
  return found?.name === name ? found : undefined
}

/** Others see the old one or the new one. */
export async function writeName(folder: string, { name, id }: NamedSnapshot): Promise<void> {
  const draft = draftIn(folder)
  try {
    await writeFile(draft, `${JSON.stringify({ name, id })}\n`, { mode: 0o400, flag: 'wx', flush: true })
    await rename(draft, pathOf(folder, name))
    await syncFolder(folder)
  } finally {
    await rm(draft, { force: true })
  }
}

export async function listNames(folder: string): Promise<NamedSnapshot[]> {
  sweepDrafts(folder)
  const files = (await readdir(folder)).filter((file) => /^[0-9a-f]{64}$/.test(file))
  const names = await Promise.all(files.map((file) => readNameFile(join(folder, file))))
  return names.filter((name) => name !== undefined)
}

export async function removeName(folder: string, name: string): Promise<void> {
  await rm(pathOf(folder, name), { force: true })
}

function pathOf(folder: string, name: string): string {
  return join(folder, createHash('sha256').update(name, 'utf8').digest('hex'))
}

async function readNameFile(path: string): Promise<NamedSnapshot | undefined> {
  try {
    return nameSchema.parse(JSON.parse(await readFile(path, 'utf8')))
  } catch {
    return undefined
  }
}
