import { randomUUID } from 'node:crypto'
import { lstatSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { currentBoot, currentOwner, isAlive, ownerName, parseOwner } from './owner.js'

const draftName = /^\.glovebox\.([^-]+)-[0-9a-f-]{36}\.draft$/
/** Longer than what writes a file lives. */
const forgottenMs = 7 * 24 * 3_600_000

/** The path of a file that is to be renamed or linked to its place when it is whole. Its name tells who makes it, so that it can be swept when that is dead. */
export function draftIn(folder: string): string {
  return join(folder, `.glovebox.${ownerName(currentOwner())}-${randomUUID()}.draft`)
}

/** Removes the drafts of ours in a folder whose makers were killed. What cannot be looked at or removed stays: it is in nobody's way. */
export function sweepDrafts(folder: string): void {
  try {
    for (const path of leftDrafts(folder, 'file')) rmSync(path, { force: true })
  } catch {
    // The next one finds it.
  }
}

/** The drafts of ours in a folder whose makers were killed. */
export function leftDrafts(folder: string, kind: 'file' | 'folder'): string[] {
  return readdirSync(folder)
    .filter((name) => draftName.test(name) && isLeft(join(folder, name), name, kind))
    .map((name) => join(folder, name))
}

/** A folder may be shared with another machine, whose processes cannot be seen from here; time tells of those. */
function isLeft(path: string, name: string, kind: 'file' | 'folder'): boolean {
  const owner = parseOwner(draftName.exec(name)?.[1] ?? '')
  const status = lstatSync(path, { throwIfNoEntry: false })
  const isOfKind = kind === 'file' ? status?.isFile() : status?.isDirectory()
  if (owner === undefined || !status || isOfKind !== true || status.uid !== process.getuid?.()) return false
  return owner.boot === currentBoot() ? !isAlive(owner) : Date.now() - status.mtimeMs > forgottenMs
}
