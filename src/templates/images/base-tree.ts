/** A template that is kept, as the lowest layer of another: its files stay where they are, and are copied when the other becomes files. */
import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type FileNode, type ImageTree, newFolder } from './image-tree.js'

export function readBase(tree: ImageTree, root: string): void {
  addFolder(tree, { root, path: [], files: new Map() })
  tree.nextLayer()
}

interface Reading {
  readonly root: string
  readonly path: readonly string[]
  /** By inode, so that one file with two names stays one. */
  readonly files: Map<number, FileNode>
}

function addFolder(tree: ImageTree, { root, path, files }: Reading): void {
  for (const name of readdirSync(join(root, ...path))) {
    const inner = [...path, name]
    const source = join(root, ...inner)
    const status = lstatSync(source)
    if (status.isDirectory()) {
      tree.put(inner, newFolder())
      addFolder(tree, { root, path: inner, files })
    } else if (status.isSymbolicLink()) tree.put(inner, { kind: 'link', target: readlinkSync(source) })
    else if (status.isFile()) {
      const node = files.get(status.ino) ?? { kind: 'file', content: source, size: status.size, isExecutable: (status.mode & 0o111) !== 0, isBorrowed: true }
      files.set(status.ino, node)
      tree.put(inner, node)
    }
  }
}
