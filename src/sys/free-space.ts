import { statfsSync } from 'node:fs'
import { folderError } from './folder-error.js'

/** What ordinary users could still write where this path is. */
export function freeBytesAt(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize
  } catch (error) {
    throw folderError(path, error)
  }
}
