import { dirname, resolve } from 'node:path'
import { SandboxError, type ErrorCode } from '../contract/errors.js'
import { printable } from '../contract/printable.js'

const words: Readonly<Record<string, readonly [code: ErrorCode, words: string]>> = {
  ENOENT: ['not-found', 'does not exist'],
  ENOTDIR: ['conflict', 'has something in its path that is no folder'],
  EISDIR: ['conflict', 'is a folder'],
  EEXIST: ['conflict', 'is there already'],
  ENOTEMPTY: ['conflict', 'is a folder that is not empty'],
  ELOOP: ['conflict', 'goes through a link'],
  EACCES: ['denied', 'may not be used by this user'],
  EPERM: ['denied', 'may not be used by this user'],
  EROFS: ['denied', 'is on a file system that is read-only'],
  ENOSPC: ['full', 'has no room left on its disk'],
  EDQUOT: ['full', 'is beyond the disk quota'],
  ENAMETOOLONG: ['invalid', 'has too long a name'],
  EMFILE: ['busy', 'finds no descriptor left in this process'],
}

/** What the system says of a path of the host's. */
export function localError(call: string, path: string, error: unknown): unknown {
  if (error instanceof SandboxError) return error
  const { code, syscall, path: at } = error as NodeJS.ErrnoException
  if (code === undefined || syscall === undefined) return error
  const [kind, why] = words[code] ?? ['conflict', `cannot be used: ${code}`]
  const inner = /^\/proc\/self\/fd\/\d+\/(.+)$/s.exec(String(at))?.[1]
  const what = inner === undefined ? printable(path) : `${printable(inner)} in ${printable(path)}`
  const hint = kind === 'full' ? { hint: `df -h -- '${printable(dirname(resolve(path)))}'` } : {}
  return new SandboxError(kind, `${call}: ${what} on this machine ${why}`, { ...hint, cause: error })
}
