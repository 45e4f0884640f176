import type { Group } from './cgroup-files.js'
import { type CgroupLimits, type ControllerFiles, controllerFiles } from './cgroup-limits.js'
import type { Controller } from './cgroup-mounts.js'

/** A hierarchy in which groups can be made below `base`, with the controllers it gives them. */
export interface Hierarchy {
  readonly version: 1 | 2
  readonly base: string
  readonly controllers: readonly Controller[]
}

/** The groups of a cell in one hierarchy. */
export interface Levels {
  readonly hierarchy: Hierarchy
  readonly cell: Group
  /** In version 1, where a group with others beneath it may have processes too, it is the cell's own. */
  readonly warden: Group | undefined
  readonly guest: Group
}

/** What is shared between guests and warden, so that one must be kept from taking the other's. */
const shared: readonly Controller[] = ['memory', 'pids']
/** What counts a run, or holds it to limits of its own. */
const perRun: readonly Controller[] = ['memory', 'cpuacct', 'pids']

/**
 * Where a hierarchy of version 1 only counts or shares out the processor or disks, the cell's group is the guests' and the warden stays outside. One that only
 * freezes has room above the guests, for whoever is not to stand still with them.
 */
export function levelsOf(hierarchy: Hierarchy, cell: Group): Levels {
  const isFlat = hierarchy.version === 1 && !hierarchy.controllers.some((name) => shared.includes(name))
  if (!isFlat) return { hierarchy, cell, warden: hierarchy.version === 1 ? cell : cell.below('warden'), guest: cell.below('guest') }
  return { hierarchy, cell, warden: undefined, guest: onlyFreezes(hierarchy) ? cell.below('guest') : cell }
}

export function onlyFreezes({ controllers }: Hierarchy): boolean {
  return controllers.every((name) => name === 'freezer')
}

/** The controllers for which each run has a group of its own below `guest`. */
export function runControllers({ controllers }: Hierarchy): Controller[] {
  return controllers.filter((name) => perRun.includes(name))
}

/** The file that a process writes itself to. A thread that moves itself in version 1 stops no fork or exit of the machine, as moving a process does. */
export function doorOf({ version }: Hierarchy): 'tasks' | 'cgroup.procs' {
  return version === 1 ? 'tasks' : 'cgroup.procs'
}

/** How controllers are asked for. Version 2 counts processor time without one. */
export function handedDown(controllers: readonly Controller[]): string[] {
  return controllers.flatMap((name) => (name === 'cpuacct' ? [] : [`+${name}`]))
}

/** The limits of one controller on one group of a cell. */
export interface Setting {
  readonly version: 1 | 2
  readonly controller: Controller
  readonly files: ControllerFiles
  readonly group: Group
  /** The cell's own group, above guests and warden, rather than the guests'. */
  readonly isCell: boolean
  /** What it is set to, given the limits of the guests. */
  readonly limitsFrom: (limits: CgroupLimits) => CgroupLimits
}

const headroomBytes = 16 * 2 ** 20
/** A run costs a keeper beside its program. */
const keeperBytes = 256 * 2 ** 10
const headroomProcesses = 16

function withHeadroom({ memoryBytes, cpus, processes }: CgroupLimits): CgroupLimits {
  return { memoryBytes: memoryBytes + headroomBytes + processes * keeperBytes, cpus, processes: 2 * processes + headroomProcesses }
}

/** In the order in which a cell is built. */
export function settingsOf({ hierarchy, cell, guest }: Levels): Setting[] {
  const { version } = hierarchy
  return hierarchy.controllers.flatMap((controller): Setting[] => {
    const files = controllerFiles[version][controller]
    if (files === undefined) return []
    const setting = { version, controller, files }
    const own: Setting = { ...setting, group: guest, isCell: false, limitsFrom: (limits) => limits }
    return shared.includes(controller) ? [{ ...setting, group: cell, isCell: true, limitsFrom: withHeadroom }, own] : [own]
  })
}
