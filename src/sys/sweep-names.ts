import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { LeftoverKind, Sweeper } from './sweeper.js'
import { removeTree } from './tree-removal.js'

export interface NameSweep {
  readonly kind: LeftoverKind
  /** Of a name, its first group that of the owner; what does not match is not looked at. */
  readonly pattern: RegExp
  readonly sweeper: Sweeper
}

/** Removes files and folders of dead owners, by their names, from a folder that nobody else writes to. Quiet where there is no such folder. */
export async function sweepNames(folder: string, { kind, pattern, sweeper }: NameSweep): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const owner = pattern.exec(name)?.[1]
    const path = join(folder, name)
    if (owner !== undefined) await sweeper.attemptSlowly({ kind, what: path, owner }, () => removeAny(path))
  }
}

async function removeAny(path: string): Promise<void> {
  await removeTree(path)
  await rm(path, { force: true })
}

/** `<owner>-…` */
export const ownerFirst = /^([^-]+)-/
