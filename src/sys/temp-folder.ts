/** Folders for a while, which a program may fill with whatever it likes. */
import { randomUUID } from 'node:crypto'
import { chmod, lstat, mkdtemp, opendir, realpath, rename, rmdir, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SandboxError } from '../contract/errors.js'

const maxPasses = 20

/** Mode 0700, below the system's place for temporary files. */
export async function makeTempFolder(prefix: string): Promise<string> {
  return await mkdtemp(join(await realpath(tmpdir()), prefix))
}

/**
 * Removes a folder with all that is in it; quiet when it is gone already. Every folder found inside is first moved up to the top, so that no path
 * grows with the depth of the tree, and is opened up before, so that no mode protects it. Names are bytes: they need not be text. Links are
 * removed, never followed.
 */
export async function removeTree(folder: string): Promise<void> {
  if (!(await isFolder(folder))) return
  const top = Buffer.from(`${folder}/`)
  for (let pass = 0; pass < maxPasses; pass += 1) {
    await empty(Buffer.from(folder), top)
    if (await isRemoved(folder)) return
  }
  throw new SandboxError('broken', `${folder} is filled faster than it can be emptied`)
}

async function empty(folder: Buffer, top: Buffer): Promise<void> {
  const waiting = [folder]
  for (let current = waiting.pop(); current; current = waiting.pop()) {
    await chmod(current, 0o700)
    const isTop = current === folder
    for await (const entry of await opendir(current, { encoding: 'buffer' as BufferEncoding })) {
      const path = Buffer.concat([current, slash, entry.name as unknown as Buffer])
      if (!entry.isDirectory()) await unlink(path)
      else waiting.push(isTop ? path : await moveUp(path, top))
    }
    if (!isTop) await isRemoved(current)
  }
}

const slash = Buffer.from('/')

async function moveUp(path: Buffer, top: Buffer): Promise<Buffer> {
  const target = Buffer.concat([top, Buffer.from(randomUUID())])
  // Moving a folder writes its `..`, which its own mode can forbid.
  await chmod(path, 0o700)
  await rename(path, target)
  return target
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isDirectory()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

async function isRemoved(path: string | Buffer): Promise<boolean> {
  try {
    await rmdir(path)
    return true
  } catch (error) {
    // Something was put there meanwhile, by a program that is about to end; the next pass finds it.
    if ((error as NodeJS.ErrnoException).code === 'ENOTEMPTY') return false
    throw error
  }
}
