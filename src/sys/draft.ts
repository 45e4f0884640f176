import { randomUUID } from 'node:crypto'
import { closeSync, constants, lstatSync, openSync, readdirSync, rmdirSync, type Stats, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { currentBoot, currentOwner, ownerName, parseOwner } from './owner.js'
import { gone, Sweeper } from './sweeper.js'

const draftPattern = /^\.glovebox\.([^-]+)-[0-9a-f-]{36}\.draft$/
/** Longer than what writes a file lives. */
const forgottenMs = 7 * 24 * 3_600_000

/** The path of a file that is to be renamed or linked to its place when it is whole. */
export function draftIn(folder: string): string {
  return join(folder, draftName())
}

/** Tells who makes it, so that it can be swept when that is dead. */
export function draftName(): string {
  return `.glovebox.${ownerName(currentOwner())}-${randomUUID()}.draft`
}

/**
 * Removes the drafts of ours in a folder whose makers were killed. What cannot be looked at or removed stays: it is in nobody's way. Files and empty folders
 * only: whoever may write in the folder can give such a name to anything in it, and could remove those there, but not a folder of ours with what is in it.
 */
export function sweepDrafts(folder: string, sweeper = new Sweeper()): void {
  try {
    const held = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY)
    try {
      sweepIn({ folder: `/proc/self/fd/${held}`, shown: folder }, sweeper)
    } finally {
      closeSync(held)
    }
  } catch {
    // The next one finds it.
  }
}

function sweepIn({ folder, shown }: { readonly folder: string; readonly shown: string }, sweeper: Sweeper): void {
  for (const name of readdirSync(folder)) {
    const owner = draftPattern.exec(name)?.[1]
    if (owner === undefined) continue
    const path = join(folder, name)
    const status = lstatSync(path, { throwIfNoEntry: false })
    if (status && isOfHere(status, owner)) sweeper.attempt({ kind: 'draft', what: join(shown, name), owner }, () => sweepOne(path, status))
  }
}

function sweepOne(path: string, status: Stats): unknown {
  if (!status.isDirectory() && !status.isFile()) return gone
  if (status.isFile()) unlinkSync(path)
  else rmdirSync(path)
  return undefined
}

/** A folder may be shared with another machine, whose processes cannot be seen from here; time tells of those. */
function isOfHere(status: Stats, name: string): boolean {
  const owner = parseOwner(name)
  if (owner === undefined || status.uid !== process.getuid?.()) return false
  return owner.boot === currentBoot() || Date.now() - status.mtimeMs > forgottenMs
}
