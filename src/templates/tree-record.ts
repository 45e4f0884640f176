/**
 * Tells whether a tree is as it was left, without reading it. Whatever happens to a file changes the time of its own last change, which nobody can set;
 * whatever happens to a link, or to a name, changes that of the folder it is in. So the files and folders are all there is to look at.
 */
import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

type Entry = readonly [path: string, facts: string]

export function recordTree(folder: string): string {
  return JSON.stringify(entriesOf(folder, '.'))
}

/** Throws when something cannot be looked at. */
export function isAsRecorded(folder: string, record: string): boolean {
  return parseRecord(record)?.every(([path, facts]) => factsOf(join(folder, path)) === facts) ?? false
}

function entriesOf(folder: string, path: string): Entry[] {
  const entries: Entry[] = [[path, factsOf(join(folder, path))]]
  for (const item of readdirSync(join(folder, path), { withFileTypes: true })) {
    const inner = join(path, item.name)
    if (item.isDirectory()) entries.push(...entriesOf(folder, inner))
    else if (item.isFile()) entries.push([inner, factsOf(join(folder, inner))])
  }
  return entries
}

function factsOf(path: string): string {
  const { mode, uid, size, mtimeNs, ctimeNs } = lstatSync(path, { bigint: true })
  return [mode, uid, size, mtimeNs, ctimeNs].join(' ')
}

/** Undefined for what is no record, such as one that was cut short. */
function parseRecord(record: string): readonly Entry[] | undefined {
  try {
    const entries: unknown = JSON.parse(record)
    return Array.isArray(entries) && entries.length > 0 && entries.every(isEntry) ? entries : undefined
  } catch {
    return undefined
  }
}

function isEntry(entry: unknown): entry is Entry {
  return Array.isArray(entry) && entry.length === 2 && entry.every((each) => typeof each === 'string')
}
