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

/** A zombie holds nothing of anybody's; it waits for its parent. */
export function isZombie(pid: number): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return /^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2))
}

const endingPasses = 200
const betweenMs = 5

/** Kills whatever is found until nothing is: what is killed may have forked before. Throws when something does not go. Returns what was there, in words. */
export function endAll(find: () => readonly number[]): string[] {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  const ended = new Map<number, string>()
  let left = find()
  for (let pass = 0; left.length > 0 && pass < endingPasses; pass += 1) {
    for (const pid of left) if (!ended.has(pid)) ended.set(pid, describeProcess(pid))
    left.forEach(killProcess)
    Atomics.wait(pause, 0, 0, betweenMs)
    left = find()
  }
  if (left.length > 0) throw new Error(`process ${left.join(', ')} does not end`)
  return [...ended.values()]
}

const mostWords = 60

/** Its number and its command, as far as that can be read. */
export function describeProcess(pid: number): string {
  try {
    return `${pid} ${argumentsOf(pid).join(' ').trim().slice(0, mostWords)}`.trim()
  } catch {
    return String(pid)
  }
}

/** Quiet when it is gone. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
