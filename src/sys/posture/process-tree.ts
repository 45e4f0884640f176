import { existsSync } from 'node:fs'
import { findProcesses, parentOf } from '../processes.js'
import { isGone, listProc, readProc } from './proc-files.js'

/** Pids of the children, oldest first; none of a process that is gone. */
export function childrenOf(pid: number): number[] {
  const lists = listsOfChildren(pid)
  if (lists.every((list) => list !== undefined) && lists.length > 0) return lists.flat()
  // Some kernels keep no such list; then everybody is asked for its parent.
  return existsSync('/proc/thread-self/children') ? lists.flatMap((list) => list ?? []) : findProcesses((candidate) => parentOf(candidate) === pid)
}

/** One of each thread. One that has ended meanwhile has none, and leaves its children to the others. */
function listsOfChildren(pid: number): (number[] | undefined)[] {
  const threads = whileThere(() => threadsOf(pid)) ?? []
  return threads.map((thread) => whileThere(() => wordsOf(readProc(`${pid}/task/${thread}`, 'children'))))
}

function whileThere<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

/** The thread that has the process's own number comes first. */
export function threadsOf(pid: number): number[] {
  return listProc(pid, 'task')
    .map(Number)
    .sort((one, other) => Number(other === pid) - Number(one === pid) || one - other)
}

function wordsOf(text: string): number[] {
  return text.split(' ').filter(Boolean).map(Number)
}

/** All that descends from a process, parents first. Whoever forks meanwhile is looked at again until nothing new shows, but not for ever. */
export function descendantsOf(pid: number): number[] {
  const found = new Set<number>()
  for (let pass = 0, before = -1; pass < mostPasses && found.size > before; pass += 1) {
    before = found.size
    const waiting = [pid]
    for (let parent = waiting.shift(); parent !== undefined; parent = waiting.shift()) {
      for (const child of childrenOf(parent)) {
        found.add(child)
        waiting.push(child)
      }
    }
  }
  return [...found]
}

const mostPasses = 4

/** The pid in the innermost namespace, undefined when it has gone. */
export function innerPid(who: number | string): number | undefined {
  try {
    const pids = /^NSpid:.*\s(\d+)$/m.exec(readProc(who, 'status'))
    return pids === null ? undefined : Number(pids[1])
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}
