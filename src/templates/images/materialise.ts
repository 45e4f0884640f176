/** A tree that is known becomes files: folders first, then contents by renaming, links last, so that no link is there while anything is written. */
import { chmodSync, constants, copyFileSync, linkSync, mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { FileNode, ImageTree } from './image-tree.js'

export interface MaterialiseOptions {
  /** Not there yet; its folder is ours alone. */
  readonly root: string
  readonly signal?: AbortSignal | undefined
  readonly onEntry?: (count: number) => void
}

const entriesAtOnce = 200
const readableMode = 0o644
const executableMode = 0o755

/** Contents leave the place where they were. Everything belongs to us; modes are those of a template. */
export async function materialise(tree: ImageTree, { root, signal, onEntry }: MaterialiseOptions): Promise<void> {
  mkdirSync(root)
  chmodSync(root, executableMode)
  const links: (readonly [path: string, target: string])[] = []
  const placed = new Map<FileNode, string>()
  let count = 0
  for (const [parts, node] of tree.walk()) {
    const path = join(root, ...parts)
    if (node.kind === 'link') links.push([path, node.target])
    else if (node.kind === 'file') place(node, path, placed)
    else {
      mkdirSync(path)
      chmodSync(path, executableMode)
    }
    count += 1
    if (count % entriesAtOnce !== 0) continue
    onEntry?.(count)
    await setImmediate()
    signal?.throwIfAborted()
  }
  for (const [path, target] of links) symlinkSync(target, path)
}

function place(node: FileNode, path: string, placed: Map<FileNode, string>): void {
  const first = placed.get(node)
  if (first !== undefined && isLinked(first, path)) return
  // On file systems that can, a copy shares what it is a copy of.
  if (node.isBorrowed || first !== undefined) copyFileSync(first ?? node.content, path, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  else renameSync(node.content, path)
  chmodSync(path, node.isExecutable ? executableMode : readableMode)
  placed.set(node, path)
}

/** A file has only so many names; where it has them all, the next ones are of a copy. */
function isLinked(first: string, path: string): boolean {
  try {
    linkSync(first, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EMLINK') return false
    throw error
  }
}
