import { findProcesses } from '../processes.js'
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
 * Host numbers of all threads in a cell but those of its first process, the dead among them. No single list has all: a group has not who is outside
 * of it, and the tree not who is handed to another parent meanwhile; where there are no groups everybody is asked for its pid namespace.
 */
export function threadsOfCell({ first, pidNamespace, folders }: ThreadPlaces): ReadonlySet<number> {
  const grouped = folders?.flatMap((folder) => [...threadsBelow(folder)])
  const alike = grouped === undefined ? findProcesses((pid) => linkInProc(pid, 'ns/pid') === pidNamespace) : []
  const processes = new Set([...descendantsOf(first), ...alike])
  processes.delete(first)
  // A number that means nothing here is told as 0.
  return new Set([...processes].flatMap(threadsIfThere).concat(grouped?.filter((thread) => thread > 0) ?? []))
}

function threadsIfThere(pid: number): number[] {
  try {
    return threadsOf(pid)
  } catch (error) {
    if (isGone(error)) return []
    throw error
  }
}
