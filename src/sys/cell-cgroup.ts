import { SandboxError } from '../contract/errors.js'
import { type CgroupTree, Group } from './cgroup-files.js'
import { type CgroupLimits, type CgroupUsage, controllerFiles, type StatedLimits } from './cgroup-limits.js'
import type { Controller } from './cgroup-mounts.js'

/** A hierarchy in which groups can be made below `base`, with the controllers it gives them. */
export interface Hierarchy {
  readonly version: 1 | 2
  readonly base: string
  readonly controllers: readonly Controller[]
}

/**
 * The groups of one cell: `guest` bears the limits; `warden` beside it holds what serves the guests; the cell above both has the limits
 * and some headroom, so that a guest that takes all it may never takes the warden with it.
 */
export interface CellCgroup {
  /** Files to which the first process of the cell writes a 0 in order to enter. It must have a single thread, as must guests. */
  readonly joins: readonly string[]
  /** The same for every guest program. */
  readonly guestJoins: readonly string[]
  /** What the kernel says the guests' limits are. */
  stated(): StatedLimits
  /** What the guests used, all together, so far. */
  usage(): CgroupUsage
  kill(): void
  /** Idempotent; kills what is left. */
  remove(): Promise<void>
}

export interface CellCgroupOrder {
  readonly hierarchies: readonly Hierarchy[]
  readonly tree: CgroupTree
  /** Name of the cell's folder. */
  readonly name: string
  readonly limits: CgroupLimits
}

const headroomBytes = 16 * 2 ** 20
/** A run costs a keeper beside its program. */
const keeperBytes = 256 * 2 ** 10
const headroomProcesses = 16
const pageBytes = 4096

export async function createCellCgroup({ hierarchies, tree, name, limits }: CellCgroupOrder): Promise<CellCgroup> {
  const levels = hierarchies.map((hierarchy) => levelsOf(hierarchy, new Group(hierarchy.base, tree).below(name)))
  const cell: CellCgroup = {
    joins: levels.flatMap(({ hierarchy, warden }) => (warden ? [doorOf(hierarchy, warden)] : [])),
    guestJoins: levels.map(({ hierarchy, guest }) => doorOf(hierarchy, guest)),
    stated: () => Object.assign({ memoryBytes: undefined, cpus: undefined, processes: undefined }, ...ask(levels, 'stated')) as StatedLimits,
    usage: () => Object.assign({ ...nothingCounted }, ...ask(levels, 'usage')) as CgroupUsage,
    kill: () => {
      for (const { guest, warden } of levels) for (const group of [guest, ...(warden ? [warden] : [])]) group.kill()
    },
    remove: () => removeCellGroups(levels.map(({ cell }) => cell)),
  }
  try {
    for (const level of levels) build(level, limits)
    refuseOtherLimits(cell.stated(), limits, levels)
    return cell
  } catch (error) {
    await cell.remove()
    if (error instanceof SandboxError) throw error
    throw new SandboxError('unsupported', `the kernel refuses these limits: ${(error as Error).message}`, { cause: error })
  }
}

/** A thread that moves itself in version 1 does not stop every fork and exit of the machine for an RCU grace period, as moving a process does. */
function doorOf({ version }: Hierarchy, group: Group): string {
  return version === 1 ? group.tasks : group.procs
}

/** The two groups of a cell first, then the cell's own, in every hierarchy. */
export async function removeCellGroups(cells: readonly Group[]): Promise<void> {
  for (const cell of cells) for (const group of [cell.below('guest'), cell.below('warden'), cell]) await group.remove()
}

interface Levels {
  readonly hierarchy: Hierarchy
  readonly cell: Group
  readonly warden: Group | undefined
  readonly guest: Group
}

/** What is shared between guests and warden, so that one must be kept from taking the other's. */
const shared: readonly Controller[] = ['memory', 'pids']

const nothingCounted: CgroupUsage = { memoryPeakBytes: undefined, cpuMs: undefined, oomKills: undefined, processesPeak: undefined, processHits: undefined }

/** Where a hierarchy of version 1 only counts or shares out the processor, the cell's group is the guests' and the warden stays outside. */
function levelsOf(hierarchy: Hierarchy, cell: Group): Levels {
  const isFlat = !hierarchy.controllers.some((name) => shared.includes(name))
  return isFlat ? { hierarchy, cell, warden: undefined, guest: cell } : { hierarchy, cell, warden: cell.below('warden'), guest: cell.below('guest') }
}

function ask(levels: readonly Levels[], question: 'stated' | 'usage'): object[] {
  return levels.flatMap(({ hierarchy, guest }) => hierarchy.controllers.map((name) => controllerFiles[hierarchy.version][name]?.[question](guest) ?? {}))
}

function build({ hierarchy, cell, warden, guest }: Levels, limits: CgroupLimits): void {
  const files = controllerFiles[hierarchy.version]
  cell.make()
  if (hierarchy.version === 2) cell.write('cgroup.subtree_control', hierarchy.controllers.map((name) => `+${name}`).join(' '))
  warden?.make()
  if (guest !== cell) guest.make()
  for (const name of hierarchy.controllers) {
    if (shared.includes(name)) files[name]?.limit(cell, withHeadroom(limits))
    files[name]?.limit(guest, limits)
  }
}

function withHeadroom({ memoryBytes, cpus, processes }: CgroupLimits): CgroupLimits {
  return { memoryBytes: memoryBytes + headroomBytes + processes * keeperBytes, cpus, processes: 2 * processes + headroomProcesses }
}

/** A limit holds when the kernel says so, not when a write succeeded. Memory is counted in whole pages. */
function refuseOtherLimits(stated: StatedLimits, limits: CgroupLimits, levels: readonly Levels[]): void {
  const controllers = levels.flatMap(({ hierarchy }) => hierarchy.controllers)
  const wrong = [
    controllers.includes('memory') &&
      !(stated.memoryBytes !== undefined && stated.memoryBytes <= limits.memoryBytes && stated.memoryBytes > limits.memoryBytes - pageBytes) &&
      'memory',
    controllers.includes('cpu') && !(stated.cpus !== undefined && Math.abs(stated.cpus - limits.cpus) < 1e-4) && 'cpus',
    controllers.includes('pids') && stated.processes !== limits.processes && 'processes',
  ].filter((name) => name !== false)
  if (wrong.length > 0) throw new SandboxError('unsupported', `the kernel states other limits than it was given: ${wrong.join(', ')}`)
}
