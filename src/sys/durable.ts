/** What must be there after the machine lost its power, too. */
import { closeSync, constants, fsync, fsyncSync, openSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'

/** Several at once: the kernel writes them together. */
export async function syncAll(descriptors: readonly number[]): Promise<void> {
  await Promise.all(descriptors.map((descriptor) => promisify(fsync)(descriptor)))
}

/** A new file; its name is durable when its folder is. */
export function writeDurably(path: string, text: string): void {
  const file = openSync(path, 'wx', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** The names in the folder of a path. */
export async function syncFolderOf(path: string): Promise<void> {
  const folder = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await syncNames(folder)
  } finally {
    closeSync(folder)
  }
}

/** The names in a folder. Where a file system knows no such thing it is its own affair. */
export async function syncNames(folder: number): Promise<void> {
  try {
    await promisify(fsync)(folder)
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}
