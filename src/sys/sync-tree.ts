import { capture } from './spawn.js'

/** Everything of the file system that a folder is on is on the disk. Where there is no such program, the kernel writes it in its own time. */
export async function syncTree(folder: string): Promise<void> {
  await capture(['/usr/bin/sync', '-f', folder]).catch(() => undefined)
}
