import { SandboxError } from '../contract/errors.js'

interface Obstacle {
  readonly words: string
  /** What is in the way: a whole file system, or one path of it. */
  readonly of: 'folder' | 'path'
  readonly hint: (place: string) => string
}

const showSpace = (place: string): string => `df -h ${place}`
const showOwner = (place: string): string => `ls -ld ${place}`

const obstacles: Readonly<Record<string, Obstacle>> = {
  ENOSPC: { words: 'no space left', of: 'folder', hint: showSpace },
  EDQUOT: { words: 'the disk quota is used up', of: 'folder', hint: showSpace },
  EROFS: { words: 'the file system is read-only', of: 'folder', hint: (place) => `findmnt -T ${place}` },
  EACCES: { words: 'may not be used by this user', of: 'path', hint: showOwner },
  EPERM: { words: 'may not be used by this user', of: 'path', hint: showOwner },
  ENOTDIR: { words: 'has something in its path that is not a folder', of: 'path', hint: showOwner },
}

/** What a file system that cannot be written to is reported as: an obstacle on this machine, no defect of ours. Any other error stays what it is. */
export function storageRefusal(error: unknown, folder?: string): unknown {
  if (error instanceof SandboxError || !(error instanceof Error)) return error
  const { code = '', path } = error as Error & { readonly code?: string; readonly path?: string }
  const obstacle = Object.hasOwn(obstacles, code) ? obstacles[code] : undefined
  if (!obstacle) return error
  const place = obstacle.of === 'folder' ? (folder ?? path) : (path ?? folder)
  return new SandboxError('unavailable', `${place ?? 'the disk'}: ${obstacle.words} (${code})`, { hint: obstacle.hint(place ?? '').trimEnd(), cause: error })
}
