/**
 * Tells whether a tree is as it was left, without reading it. Whatever happens to a file changes the time of its own last change, which nobody can set;
 * whatever happens to a link, or to a name, changes that of the folder it is in. So the files and folders are all there is to look at.
 */
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'

const recordSchema = z.array(z.tuple([z.string(), z.string()])).min(1)

type Entry = z.output<typeof recordSchema>[number]

export async function recordTree(folder: string): Promise<string> {
  return JSON.stringify(await entriesOf(folder, '.'))
}

export async function isAsRecorded(folder: string, record: string): Promise<boolean> {
  const entries = parseRecord(record)
  if (!entries) return false
  const matches = await Promise.all(entries.map(async ([path, facts]) => (await factsOf(join(folder, path)).catch(() => undefined)) === facts))
  return matches.every(Boolean)
}

async function entriesOf(folder: string, path: string): Promise<Entry[]> {
  const entries: Entry[] = [[path, await factsOf(join(folder, path))]]
  for (const item of await readdir(join(folder, path), { withFileTypes: true })) {
    const inner = join(path, item.name)
    if (item.isDirectory()) entries.push(...(await entriesOf(folder, inner)))
    else if (item.isFile()) entries.push([inner, await factsOf(join(folder, inner))])
  }
  return entries
}

async function factsOf(path: string): Promise<string> {
  const { mode, uid, size, mtimeNs, ctimeNs } = await lstat(path, { bigint: true })
  return [mode, uid, size, mtimeNs, ctimeNs].join(' ')
}

/** Undefined for what is no record, such as one that was cut short. */
function parseRecord(record: string): readonly Entry[] | undefined {
  try {
    return recordSchema.parse(JSON.parse(record))
  } catch {
    return undefined
  }
}
