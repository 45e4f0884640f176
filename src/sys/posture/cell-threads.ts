import { readdirSync, statSync } from 'node:fs'
import { threadsBelow } from './group-members.js'
import { isGone, linkInProc } from './proc-files.js'
import { descendantsOf, threadsOf } from './process-tree.js'
import { lifeOf } from './thread-life.js'

export interface ThreadPlaces {
  /** The first process of the cell. */
  readonly first: number
  /** Whoever waits for its end, with a single thread and no guest: an engine's groups hold it too. */
  readonly monitor?: number
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
export function threadsOfCell({ first, monitor, pidNamespace, folders }: ThreadPlaces): ReadonlySet<number> {
  const grouped = folders?.flatMap((folder) => [...threadsBelow(folder)])
  const { inside, ended } = grouped === undefined ? processesIn(pidNamespace) : { inside: [], ended: [] }
  const processes = new Set([...descendantsOf(first), ...inside])
  processes.delete(first)
  // A number that means nothing here is told as 0.
  return new Set([...processes].flatMap(threadsOrItself).concat(ended, grouped?.filter((thread) => thread > 0 && thread !== monitor) ?? []))
}

/** And those that have ended since they were listed, or are about to: one of them may have left a child that is in no list yet. */
function processesIn(pidNamespace: string): { readonly inside: readonly number[]; readonly ended: readonly number[] } {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const inside: number[] = []
  const ended: number[] = []
  // The newest are asked first, because they are the likeliest to vanish.
  for (const pid of all.reverse().map(Number)) {
    const namespace = pidNamespaceOf(pid)
    if (namespace === pidNamespace) inside.push(pid)
    else if (namespace === undefined && hasEnded(pid)) ended.push(pid)
  }
  return { inside, ended }
}

/** Whose it was that is gone nobody can say; of those that are still there only our own matter, because a cell without groups has our id. */
function hasEnded(pid: number): boolean {
  const owner = statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid
  return owner === undefined || (owner === process.getuid?.() && lifeOf(pid) === undefined)
}

/** Undefined of one that does not tell: it is another user's, or at its end. */
function pidNamespaceOf(pid: number): string | undefined {
  try {
    return linkInProc(pid, 'ns/pid')
  } catch {
    return undefined
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
