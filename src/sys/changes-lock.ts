import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import { currentOwner, isAlive, ownerName, parseOwner } from './owner.js'
import { sweepNames } from './sweep-names.js'
import type { Sweeper } from './sweeper.js'

/**
 * One at a time may change a folder. The lock is a folder that holds one file, named by its owner, and is renamed into place, which fails on one that is not
 * empty. What a dead owner left is taken away by its exact name, so that nobody takes away the lock of whoever came after.
 */
export function lockFolder(place: string, folder: string, busy = beingApplied): Disposable {
  const locks = join(place, 'locks')
  const lock = join(locks, createHash('sha256').update(folder).digest('hex').slice(0, 32))
  const name = ownerName(currentOwner())
  mkdirSync(locks, { recursive: true, mode: 0o700 })
  const prepared = join(locks, `new-${name}-${randomUUID()}`)
  mkdirSync(prepared, { mode: 0o700 })
  try {
    writeFileSync(join(prepared, name), folder)
  } catch (error) {
    rmSync(prepared, { recursive: true })
    throw error
  }
  for (const owner of namesIn(lock)) if (isDead(owner)) quietly(() => unlinkSync(join(lock, owner)))
  try {
    renameSync(prepared, lock)
  } catch (error) {
    rmSync(prepared, { recursive: true })
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    throw busy(folder)
  }
  return {
    [Symbol.dispose]: () => {
      dropLock(lock, name)
    },
  }
}

/** What processes left that were killed while they changed something here; makes nothing. */
export async function sweepLocks(place: string, sweeper: Sweeper): Promise<void> {
  const locks = join(place, 'locks')
  await sweepNames(locks, { kind: 'lock', pattern: /^new-([^-]+)-/, sweeper })
  for (const name of namesIn(locks)) {
    const lock = join(locks, name)
    if (!name.startsWith('new-')) for (const owner of namesIn(lock)) sweeper.attempt({ kind: 'lock', what: lock, owner }, () => dropLock(lock, owner))
  }
}

function dropLock(lock: string, owner: string): void {
  quietly(() => unlinkSync(join(lock, owner)))
  quietly(() => rmdirSync(lock))
}

function beingApplied(folder: string): SandboxError {
  return new SandboxError('busy', `${folder} is being changed by another apply`, { hint: 'glovebox changes' })
}

function isDead(name: string): boolean {
  const owner = parseOwner(name)
  return owner !== undefined && !isAlive(owner)
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Somebody else was faster. */
function quietly(act: () => void): void {
  try {
    act()
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}
