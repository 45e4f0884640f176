import { existsSync, readdirSync } from 'node:fs'
import { threadsBelow } from './group-members.js'
import { isGone, linkInProc } from './proc-files.js'
import { descendantsOf, threadsOf } from './process-tree.js'

export interface ThreadPlaces {
  /** The first process of the cell. */
  readonly first: number
  /** As the kernel names it. */
  readonly pidNamespace: string
  /** The groups that every guest is in; undefined where there are none. */
  readonly folders: readonly string[] | undefined
}

/**
 * Host numbers of all threads in a cell but those of its first process; the dead among them, and of those that vanished meanwhile also some of which
 * nobody can say any more whether they were the cell's. No single list has all: a group has not who is outside of it, and the tree not who is handed
 * to another parent meanwhile; where there are no groups everybody is asked for its pid namespace.
 */
export function threadsOfCell({ first, pidNamespace, folders }: ThreadPlaces): ReadonlySet<number> {
  const grouped = folders?.flatMap((folder) => [...threadsBelow(folder)])
  const processes = new Set([...descendantsOf(first), ...(grouped === undefined ? processesIn(pidNamespace) : [])])
  processes.delete(first)
  // A number that means nothing here is told as 0.
  return new Set([...processes].flatMap(threadsOrItself).concat(grouped?.filter((thread) => thread > 0) ?? []))
}

/** The newest are asked first, because they are the likeliest to vanish. */
function processesIn(pidNamespace: string): number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return all
    .reverse()
    .map(Number)
    .filter((pid) => isIn(pid, pidNamespace))
}

function isIn(pid: number, pidNamespace: string): boolean {
  try {
    return linkInProc(pid, 'ns/pid') === pidNamespace
  } catch {
    // Those of other users do not tell, and neither does one that has just ended: it may have left a child that is in no list yet.
    return !existsSync(`/proc/${pid}`)
  }
}

function threadsOrItself(pid: number): number[] {
  try {
    return threadsOf(pid)
  } catch (error) {
    if (isGone(error)) return [pid]
    throw error
  }
}
