import { closeSync, constants, openSync, readdirSync, readlinkSync, readSync, statSync } from 'node:fs'

/** Reading what /proc says of a process. The kernel answers from memory within microseconds, so it is asked directly. */

/** Most files are shorter. */
const usualBytes = 4096
/** Nothing is left in it when a call returns. */
const usualRoom = Buffer.allocUnsafe(usualBytes)
/** What the kernel tells in one piece, however long: where it fills less than was asked for, that is all. Of others it may tell a part at a time. */
const inOnePiece: readonly string[] = ['status', 'limits', 'cgroup']
const codesOfTheGone = ['ENOENT', 'ESRCH']

/** Whether an error says that a process is not there any more. */
export function isGone(error: unknown): boolean {
  return codesOfTheGone.includes((error as NodeJS.ErrnoException).code ?? '')
}

/** `who` is a pid, or `PID/task/TID` for one of its threads. */
export function readProc(who: number | string, file: string, likelyBytes = usualBytes): string {
  return readKernelFile(`/proc/${who}/${file}`, { likelyBytes, isOnePiece: inOnePiece.includes(file) })
}

interface Reading {
  readonly likelyBytes?: number
  readonly isOnePiece?: boolean
}

/** Node's own way asks for a size that the kernel does not tell, and then takes room for a large file; these are small and read for every cell. */
export function readKernelFile(path: string, { likelyBytes = usualBytes, isOnePiece = false }: Reading = {}): string {
  const descriptor = openSync(path, constants.O_RDONLY)
  try {
    let buffer = likelyBytes <= usualBytes ? usualRoom : Buffer.allocUnsafe(likelyBytes)
    let filled = 0
    for (let got = -1; got !== 0; filled += got) {
      if (isOnePiece && filled > 0 && filled < buffer.length) break
      if (filled === buffer.length) buffer = Buffer.concat([buffer], 2 * filled)
      got = readSync(descriptor, buffer, filled, buffer.length - filled, null)
    }
    return buffer.toString('utf8', 0, filled)
  } finally {
    closeSync(descriptor)
  }
}

export function listProc(who: number | string, folder: string): string[] {
  return readdirSync(`/proc/${who}/${folder}`)
}

/** Of a process that is just ending the kernel says to some that its links may not be read: it has no memory any more, and counts as gone. */
export function linkInProc(who: number | string, file: string): string {
  try {
    return readlinkSync(`/proc/${who}/${file}`)
  } catch (error) {
    const isEnding = (error as NodeJS.ErrnoException).code === 'EACCES' && !/^VmSize:/m.test(readProc(who, 'status'))
    throw isEnding ? Object.assign(new Error(`process ${who} is ending`, { cause: error }), { code: 'ESRCH' }) : error
  }
}

/** Names the file that a process executes, wherever that is mounted. */
export function fileOf(who: number | string): string {
  const { dev, ino } = statSync(`/proc/${who}/exe`)
  return `${dev}:${ino}`
}
