import { copyFile, lstat, mkdir, readdir, readlink, realpath, stat, symlink, chmod } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

export interface PublicCopy {
  readonly from: string
  readonly to: string
  /** Links that lead below one of these stay links: the cell has the same there. */
  readonly kept: readonly string[]
}

const mostDepth = 8

/**
 * Copies what anybody on the host may read, and nothing else: the copy is shown to strangers even when it is made by root.
 * A link that would lead nowhere in the cell is replaced by what it leads to. What is missing is left out.
 */
export async function copyPublic(copy: PublicCopy): Promise<void> {
  const status = await lstat(copy.from).catch(() => undefined)
  if (status === undefined) return
  await mkdir(dirname(copy.to), { recursive: true, mode: 0o755 })
  await copyEntry({ ...copy, kept: [...copy.kept, ...(status.isDirectory() ? [copy.from] : [])] }, mostDepth)
}

async function copyEntry(copy: PublicCopy, depth: number): Promise<void> {
  const status = await lstat(copy.from)
  if (status.isSymbolicLink()) return copyLink(copy, depth)
  if (status.isDirectory() && isOpen(status.mode, 0o005) && depth > 0) return copyFolder(copy, depth - 1)
  if (status.isFile() && isOpen(status.mode, 0o004)) {
    await copyFile(copy.from, copy.to)
    await chmod(copy.to, 0o644)
  }
}

async function copyFolder(copy: PublicCopy, depth: number): Promise<void> {
  await mkdir(copy.to, { mode: 0o755 })
  for (const name of await readdir(copy.from)) await copyEntry({ ...copy, from: join(copy.from, name), to: join(copy.to, name) }, depth)
}

async function copyLink(copy: PublicCopy, depth: number): Promise<void> {
  const target = await readlink(copy.from)
  const lexical = resolve(dirname(copy.from), target)
  if (copy.kept.some((folder) => lexical.startsWith(`${folder}/`))) return symlink(target, copy.to)
  const real = await realpath(copy.from).catch(() => undefined)
  if (real === undefined || !(await isReachable(real))) return
  await copyEntry({ ...copy, from: real }, depth)
}

async function isReachable(path: string): Promise<boolean> {
  for (let folder = dirname(path); folder !== '/'; folder = dirname(folder)) {
    if (!isOpen((await stat(folder)).mode, 0o001)) return false
  }
  return true
}

function isOpen(mode: number, bits: number): boolean {
  return (mode & bits) === bits
}
