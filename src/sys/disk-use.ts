import { statfs } from 'node:fs/promises'

/**
 * How much of the disk of a cell is used, by any of its processes; undefined where that is not ours to see. /dev/shm is on it unless another place is told, and what is
 * above that is no guest's to change.
 */
export async function usedOnDisk(pid: number | undefined, path = '/dev/shm'): Promise<number | undefined> {
  if (pid === undefined) return undefined
  try {
    const { blocks, bfree, bsize } = await statfs(`/proc/${pid}/root${path}`)
    return (blocks - bfree) * bsize
  } catch {
    return undefined
  }
}
