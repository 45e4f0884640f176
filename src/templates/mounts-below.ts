import { readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'

/** The mount points strictly below a folder that this process can reach, parents first: whoever shows the folder without them shows them one by one. */
export async function mountsBelow(folder: string, mountinfo: string = ownMounts()): Promise<string[]> {
  const paths = mountPointsBelow(mountinfo, folder)
  const reachable = await Promise.all(paths.map(isReachable))
  return paths.filter((_, index) => reachable[index])
}

/** The kernel answers from memory, sooner than another thread could be asked to read it. */
export function ownMounts(): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return ''
  }
}

/** Sorted by path, a parent comes before what is below it. A mount upon a mount is one point. */
export function mountPointsBelow(mountinfo: string, folder: string): string[] {
  // Most folders have none, which shows without a look at every line.
  if (!/[\s\\]/.test(folder) && !mountinfo.includes(` ${folder}/`)) return []
  const points = mountinfo.split('\n').map((line) => unescape(line.split(' ')[4] ?? ''))
  return [...new Set(points.filter((point) => point.startsWith(`${folder}/`)))].sort()
}

/** Space, tab, newline and backslash are written as three octal digits, byte by byte. */
function unescape(path: string): string {
  return path.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}

/** One may be covered by a later mount, or be closed to us. */
async function isReachable(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}
