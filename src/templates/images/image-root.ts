/** From the tree that an image has to the one that a cell is shown: without what a cell has of its own, and with what it needs of /etc. */
import { readFileSync } from 'node:fs'
import { writtenEtc } from '../etc.js'
import type { ImageTree } from './image-tree.js'
import type { LayerReader } from './layers.js'

/** A cell has its own there, and an image nothing that is missed. */
const own = [['proc'], ['sys'], ['dev'], ['tmp'], ['run'], ['var', 'tmp'], ['var', 'run']]
/** A cell has its own there, and what an image has there is missed by its programs. */
const covered = [['root'], ['workspace'], ['home', 'user']]
/** These must be folders, whatever an image says: a cell has some of its own in them, or mounts of its user's. */
const folders = ['etc', 'home', 'var', 'data', 'input', 'mnt', 'opt', 'output', 'srv'].map((name) => [name])
const mostTextBytes = 1 << 20
const shells = ['/bin/bash', '/usr/bin/bash', '/bin/sh', '/usr/bin/sh']

export interface ImageRoot {
  readonly shell: string
  /** Whether runs can start there. */
  readonly hasFolder: (path: string) => boolean
}

export function settleRoot(tree: ImageTree, reader: LayerReader): ImageRoot {
  for (const path of folders) {
    if ((tree.look(path)?.kind ?? 'folder') === 'folder') continue
    tree.remove(path)
    reader.tell(`/${path.join('/')}`, 'must be a folder, and is none')
  }
  for (const path of own) tree.remove(path)
  for (const path of covered) {
    const node = tree.look(path)
    if (node && (node.kind !== 'folder' || node.entries.size > 0)) reader.tell(`/${path.join('/')}`, 'a sandbox has its own there')
    tree.remove(path)
  }
  for (const name of [...tree.root.entries.keys()]) if (name.startsWith('.')) tree.remove([name])
  const shell = shells.find((path) => tree.find(path.split('/'))?.kind === 'file') ?? '/bin/sh'
  settleEtc(tree, reader, shell)
  const given = [...own, ...covered.slice(1)].map((path) => `/${path.join('/')}`)
  return { shell, hasFolder: (path) => given.includes(path) || path === '/' || tree.find(path.split('/'))?.kind === 'folder' }
}

/** Users of the image stay, and those that a cell has come to them; what would tell of another machine is ours. */
function settleEtc(tree: ImageTree, reader: LayerReader, shell: string): void {
  for (const [name, text] of Object.entries(writtenEtc(shell))) {
    const path = ['etc', name]
    const there = textOf(tree, path)
    if (name === 'nsswitch.conf' && there !== undefined) continue
    const whole = there !== undefined && (name === 'passwd' || name === 'group') ? withOurs(there, text) : text
    tree.remove(path)
    tree.put(path, reader.newFile(whole))
  }
  tree.remove(['etc', 'mtab'])
  tree.put(['etc', 'mtab'], { kind: 'link', target: '/proc/self/mounts' })
}

/** One whose name or number the image has already is the image's. */
function withOurs(text: string, ours: string): string {
  const lines = text.split('\n').filter((line) => line !== '')
  const taken = new Set(lines.flatMap((line) => [line.split(':')[0], line.split(':')[2]]))
  const more = ours.split('\n').filter((line) => line !== '' && !line.split(':').some((part, index) => (index === 0 || index === 2) && taken.has(part)))
  return `${[...lines, ...more].join('\n')}\n`
}

function textOf(tree: ImageTree, path: readonly string[]): string | undefined {
  const node = tree.find(path)
  return node?.kind === 'file' && node.size <= mostTextBytes ? readFileSync(node.content, 'utf8') : undefined
}
