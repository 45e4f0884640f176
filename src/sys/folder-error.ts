import { SandboxError } from '../contract/errors.js'

const words: Readonly<Record<string, string>> = {
  ENOSPC: 'no space is left there',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'it is read-only',
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
}

/** What the system says of a folder of ours, with the way on: a machine's trouble, not a defect of ours. */
export function folderError(folder: string, error: unknown, hint = `df -h ${folder}`): SandboxError {
  const code = (error as NodeJS.ErrnoException).code ?? String(error)
  const isFull = code === 'ENOSPC' || code === 'EDQUOT'
  const why = words[code] === undefined ? code : `${words[code]} (${code})`
  return new SandboxError('unavailable', `cannot write to ${folder}: ${why}`, { hint: isFull ? `df -h ${folder}` : hint, cause: error })
}

/** Runs an act that writes below a folder of ours. */
export function writingTo<T>(folder: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    throw error instanceof SandboxError ? error : folderError(folder, error)
  }
}
