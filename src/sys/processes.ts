import { readdirSync, readFileSync, statSync } from 'node:fs'

/** Host pids for which the predicate holds; processes that vanish meanwhile are left out. */
export function findProcesses(matches: (pid: number) => boolean): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return matches(pid)
      } catch {
        return false
      }
    })
}

/** Those of this user. What another calls a process of theirs is theirs to say: it must neither be ended here nor keep anything from ending. */
export function findOwnProcesses(matches: (pid: number) => boolean): number[] {
  const own = process.getuid?.()
  return findProcesses((pid) => uidOf(pid) === own && matches(pid))
}

export function parentOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

export function uidOf(pid: number): number {
  return Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? statSync(`/proc/${pid}`).uid)
}

export function argumentsOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')
}

/** As the kernel tells it. */
export function mountTableOf(pid: number): string {
  return readFileSync(`/proc/${pid}/mountinfo`, 'latin1')
}

/** Quiet when it is gone. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
