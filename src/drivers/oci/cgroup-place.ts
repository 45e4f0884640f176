import { readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { SandboxError } from '../../contract/errors.js'
import type { CellCgroup } from '../../sys/cell-cgroup.js'
import { parseHierarchies } from '../../sys/cgroup-mounts.js'

/** Who puts a cell into its groups, and what the runtime sees of cgroups for that. */
export interface CgroupPlace {
  readonly joiner: 'runtime' | 'launcher' | 'warden'
  /** The same path in each hierarchy that it sees; undefined where it is to leave cgroups alone. */
  readonly path: string | undefined
  /** Groups that take the place of their hierarchy: cells lie below another group in each, and a container has one path. */
  readonly shown: readonly { readonly folder: string; readonly mountPoint: string }[]
  /** The other hierarchies: it would make groups there which nobody asked for. */
  readonly hidden: readonly string[]
  /** Those that it sees and cannot write to. */
  readonly fixed: readonly string[]
  /** Groups that the runtime makes besides, to be removed when nothing of the cell is left. */
  readonly made: readonly string[]
}

/** For a runtime that is started in the cell's groups. Some refuse to start anything where both versions are mounted, though they need neither. */
export function placeOfJoined(mountinfo = ownMounts()): CgroupPlace {
  const hierarchies = parseHierarchies(mountinfo)
  const isHybrid = hierarchies.some(({ version }) => version === 1)
  const hidden = hierarchies.flatMap(({ version, mountPoint }) => (isHybrid && version === 2 ? [mountPoint] : []))
  return { joiner: 'launcher', path: undefined, shown: [], hidden, fixed: [], made: [] }
}

/**
 * For a runtime that is to leave cgroups alone while the warden enters those of the cell, as its first act. Undefined where that is not the faster way: in version 2,
 * where whoever enters a group waits as long as whoever is put there.
 */
export function placeOfEntering({ joins }: Pick<CellCgroup, 'joins'>, mountinfo = ownMounts()): CgroupPlace | undefined {
  if (joins.length === 0 || joins.some((door) => basename(door) !== 'tasks')) return undefined
  const hierarchies = parseHierarchies(mountinfo)
  const fixed = hierarchies.filter(isOfDevices).map(({ mountPoint }) => mountPoint)
  const hidden = hierarchies.flatMap(({ mountPoint }) => (fixed.includes(mountPoint) ? [] : [mountPoint]))
  return { joiner: 'warden', path: undefined, shown: [], hidden, fixed, made: [] }
}

/** For a runtime that is to change nothing of any group: those that it sees it cannot write to. */
export function placeOfOnlooker(mountinfo = ownMounts()): Pick<CgroupPlace, 'hidden'> & { readonly fixed: readonly string[] } {
  const { hidden } = placeOfJoined(mountinfo)
  return { hidden, fixed: parseHierarchies(mountinfo).flatMap(({ mountPoint }) => (hidden.includes(mountPoint) ? [] : [mountPoint])) }
}

type Hierarchy = ReturnType<typeof parseHierarchies>[number]

/** Without that of devices in version 1 a runtime refuses to start anything. */
function isOfDevices({ version, options }: Hierarchy): boolean {
  return version === 1 && options.includes('devices')
}

export function cgroupPlace(cellId: string, cgroup: Pick<CellCgroup, 'joins'> | undefined, mountinfo = ownMounts()): CgroupPlace {
  const hierarchies = parseHierarchies(mountinfo)
  const joined = (cgroup?.joins ?? []).map((door) => placeOf(dirname(door), hierarchies))
  const name = joined[0]?.name ?? `glovebox-${cellId}`
  const devices = hierarchies.filter(isOfDevices).map(({ mountPoint }) => mountPoint)
  const own = joined.map(({ mountPoint }) => mountPoint)
  const made = devices.filter((mountPoint) => !own.includes(mountPoint)).map((mountPoint) => join(mountPoint, name))
  return {
    joiner: 'runtime',
    path: `/${name}`,
    shown: joined.flatMap(({ folder, mountPoint }) => (folder === mountPoint ? [] : [{ folder, mountPoint }])),
    hidden: hierarchies.flatMap(({ mountPoint }) => ([...own, ...devices].includes(mountPoint) ? [] : [mountPoint])),
    fixed: [],
    made,
  }
}

interface JoinedPlace {
  readonly mountPoint: string
  /** That the cell's group lies in. */
  readonly folder: string
  readonly name: string
}

function placeOf(group: string, hierarchies: readonly Hierarchy[]): JoinedPlace {
  const found = hierarchies.find(({ mountPoint }) => group.startsWith(`${mountPoint}/`))
  if (found === undefined) throw new SandboxError('unsupported', `${group} is in no hierarchy that is mounted`, { hint: 'cat /proc/self/mountinfo' })
  return { mountPoint: found.mountPoint, folder: dirname(group), name: basename(group) }
}

function ownMounts(): string {
  return readFileSync('/proc/self/mountinfo', 'utf8')
}
