import { createHash } from 'node:crypto'
import { closeSync, readSync, type Stats } from 'node:fs'
import type { PathState } from '../contract/changes.js'
import { pathText } from '../contract/path-text.js'
import type { FolderWalk, Step } from './folder-walk.js'

const chunkBytes = 2 ** 16
const nothing: PathState = { type: 'none' }
/** What is compared of modes: set-id bits are the folder's own, and never taken over. */
export const comparedBits = 0o1777

/** What is at a path below a folder, and when the kernel saw it change last; nothing where the way there goes through a link. */
export interface SeenPath {
  readonly state: PathState
  readonly status: Stats | undefined
}

export async function seePath(walk: FolderWalk, path: string): Promise<SeenPath> {
  const step = await walk.stepTo(path)
  const status = step?.folder.lookSync(step.name)
  return step === undefined || status === undefined ? { state: nothing, status: undefined } : { state: await stateOf(step, status), status }
}

async function stateOf(step: Step, status: Stats): Promise<PathState> {
  const { mtimeMs } = status
  const mode = status.mode & comparedBits
  if (status.isDirectory()) return { type: 'folder', mode, mtimeMs }
  if (status.isSymbolicLink()) return { type: 'link', target: pathText(await step.folder.readLink(step.name)), mtimeMs }
  if (!status.isFile()) return { type: 'other', mtimeMs }
  const { hash, size } = hashFile(step)
  return { type: 'file', mode, size, hash, mtimeMs }
}

/** At once: most files are small, and each wait costs more than reading one. */
function hashFile({ folder, name }: Step): { hash: string; size: number } {
  const file = folder.openFileSync(name)
  const hash = createHash('sha256')
  const chunk = Buffer.allocUnsafe(chunkBytes)
  let size = 0
  try {
    for (let read = readSync(file, chunk); read > 0; read = readSync(file, chunk)) {
      hash.update(chunk.subarray(0, read))
      size += read
    }
  } finally {
    closeSync(file)
  }
  return { hash: hash.digest('hex'), size }
}

/** Times do not count: what holds the same is the same. */
export function isSameState(one: PathState, other: PathState): boolean {
  if (one.type === 'file') return other.type === 'file' && one.hash === other.hash && one.size === other.size && one.mode === other.mode
  if (one.type === 'folder') return other.type === 'folder' && one.mode === other.mode
  if (one.type === 'link') return other.type === 'link' && one.target === other.target
  return one.type === 'none' && other.type === 'none'
}

/** Whether it was touched since it was looked at. */
export function isSameStatus(one: Stats | undefined, other: Stats | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return one.ino === other.ino && one.dev === other.dev && one.ctimeMs === other.ctimeMs && one.size === other.size
}
