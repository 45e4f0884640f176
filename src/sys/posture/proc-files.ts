import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'

/** Reading what /proc says of a process. The kernel answers from memory within microseconds, so it is asked directly. */

const codesOfTheGone = ['ENOENT', 'ESRCH']

/** Whether an error says that a process is not there any more. */
export function isGone(error: unknown): boolean {
  return codesOfTheGone.includes((error as NodeJS.ErrnoException).code ?? '')
}

/** `who` is a pid, or `PID/task/TID` for one of its threads. */
export function readProc(who: number | string, file: string): string {
  return readFileSync(`/proc/${who}/${file}`, 'utf8')
}

export function listProc(who: number | string, folder: string): string[] {
  return readdirSync(`/proc/${who}/${folder}`)
}

export function linkInProc(who: number | string, file: string): string {
  return readlinkSync(`/proc/${who}/${file}`)
}

/** Names the file that a process executes, wherever that is mounted. */
export function fileOf(pid: number): string {
  const { dev, ino } = statSync(`/proc/${pid}/exe`)
  return `${dev}:${ino}`
}
