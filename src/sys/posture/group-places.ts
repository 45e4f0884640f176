import { parseMemberships } from '../cgroup-mounts.js'
import { threadsIn } from './group-members.js'
import { readProc } from './proc-files.js'

/** Where the folders of cgroups are mounted, so that a process's own list of its groups can be compared with them. */
export interface GroupPlaces {
  /** Whether a process is in the group of a folder: it is asked once, for all. */
  membershipOf(pid: number): (folder: string) => boolean
  /** The first of some folders in which it is not; undefined when it is in all. What the kernel said of another in the same folders is not taken apart again. */
  missedBy(pid: number, folders: readonly string[]): string | undefined
}

interface Place {
  readonly point: string
  readonly root: string
  /** Of version 1 any that is bound to it; version 2 has the empty name. */
  readonly controllers: readonly string[]
}

/** From /proc/self/mountinfo: like /proc/PID/cgroup it tells paths as the reader's cgroup namespace has them. */
export function createGroupPlaces(mountinfo: string): GroupPlaces {
  const places = parsePlaces(mountinfo)
  /** What it says of those that are in all of these folders. */
  const saidOf = new WeakMap<readonly string[], string>()
  // A folder of which nobody can say how its path is told, or whose path is another, is asked for its members.
  const membership = (pid: number, text: string): ((folder: string) => boolean) => {
    const groups = parseMemberships(text)
    return (folder) => isNamed(folder, groups, places) || threadsIn(folder).has(pid)
  }
  return {
    membershipOf: (pid) => membership(pid, readProc(pid, 'cgroup')),
    missedBy(pid, folders) {
      const text = readProc(pid, 'cgroup')
      if (saidOf.get(folders) === text) return undefined
      const groups = parseMemberships(text)
      if (folders.every((folder) => isNamed(folder, groups, places))) saidOf.set(folders, text)
      return folders.find((folder) => !membership(pid, text)(folder))
    },
  }
}

function isNamed(folder: string, groups: ReadonlyMap<string, string>, places: readonly Place[]): boolean {
  const place = places.find(({ point }) => folder.startsWith(`${point}/`))
  return place !== undefined && place.controllers.some((name) => groups.get(name) === `${place.root}${folder.slice(place.point.length)}`)
}

/** `36 35 98:0 ROOT POINT options [tags]… - TYPE SOURCE SUPER_OPTIONS`; of two at one point the later covers the other. The longest comes first. */
function parsePlaces(mountinfo: string): Place[] {
  const places = new Map<string, Place>()
  for (const line of mountinfo.split('\n')) {
    const dash = line.indexOf(' - ')
    const [, , , root = '', point = ''] = line.slice(0, dash).split(' ')
    const [type, , options = ''] = line.slice(dash + 3).split(' ')
    places.delete(point)
    // A path above the namespace, or one with escapes in it, is not compared.
    if ((type !== 'cgroup' && type !== 'cgroup2') || root.includes('/..') || line.includes('\\')) continue
    places.set(point, { point, root: root === '/' ? '' : root, controllers: type === 'cgroup2' ? [''] : options.split(',') })
  }
  return [...places.values()].sort((one, other) => other.point.length - one.point.length)
}
