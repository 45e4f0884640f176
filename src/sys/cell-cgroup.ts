import { join } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import { buildGroups, isRemovedAtOnce, settleGroups } from './cgroup-building.js'
import { changeLimits } from './cgroup-change.js'
import { findFreezer, type Freezer, thawDead } from './cgroup-freezer.js'
import { type CgroupTree, Group } from './cgroup-files.js'
import { doorOf, type Hierarchy, type Levels, levelsOf, onlyFreezes, runControllers, settingsOf } from './cgroup-levels.js'
import {
  type CgroupHits,
  type CgroupLimits,
  type CgroupNow,
  type CgroupUsage,
  type ControllerFiles,
  controllerFiles,
  type StatedLimits,
} from './cgroup-limits.js'
import { renewLevels } from './cgroup-renewal.js'
import { addKnown, type CgroupRun, type CgroupRunLimits, type CgroupRuns, createRunGroups } from './cgroup-runs.js'
import { refuseOtherLimits } from './cgroup-stated.js'

/**
 * The groups of one cell: `guest` bears the limits; the cell above it has the limits and some headroom for what serves the guests, so that a guest that takes
 * all it may never takes the warden with it. Each run has a group of its own below `guest`.
 *
 * The warden is in the cell's own group. In version 2, where no group with others beneath it may have processes, it starts there too, because what it is in when its
 * namespace is made is all that it ever sees, and is put into `warden` beside `guest` by `settle`.
 */
export interface CellCgroup {
  /** Files to which the first process of the cell writes a 0 in order to enter. It must have a single thread, as must guests. */
  readonly joins: readonly string[]
  /** The same for every guest program, where runs have no groups of their own. */
  readonly guestJoins: readonly string[]
  /** Where they have: a program writes to `file` in the folder of its run's name. */
  readonly runJoins: readonly { readonly folder: string; readonly file: string }[]
  /** Whether runs can begin only then: so in version 2. */
  readonly awaitsSettling: boolean
  /** Once the first process of the cell runs, before any guest does. Throws as `checkBuilt` does. */
  settle(): void
  /** Throws SandboxError('unsupported') when the kernel states other limits than it was told. In version 2, where they are not there yet, `settle` does. */
  checkBuilt(): void
  beginRun(limits: CgroupRunLimits): CgroupRun
  /** The folders that a guest is in, given the name of its run; of any guest, beneath one of these in each hierarchy. */
  places(run: string | undefined): readonly string[]
  /** The limits of which it says anything; not given: of all. */
  readonly states?: ReadonlySet<string>
  /** What the kernel says the guests' limits are. */
  stated(): StatedLimits
  /** All or none; throws SandboxError 'conflict' when more is in use, 'unsupported' when the kernel states something else. */
  limit(limits: CgroupLimits): void
  /** What the guests used, all together, so far. */
  usage(): CgroupUsage & CgroupNow & CgroupHits
  /**
   * Stops every guest but those of the runs named, the warden not; resolves when they stand still. Throws SandboxError('unsupported') where no group can be
   * frozen, or no run left out.
   */
  freeze(besides?: readonly string[]): Promise<void>
  thaw(): Promise<void>
  /** Every guest, if they were ever frozen: what is frozen may be unable to end. */
  killFrozen(): void
  kill(): void
  /** While the cell ends: removes what is empty already, and nothing can begin any more. */
  clear(): void
  /** Idempotent; kills what is left. */
  remove(): Promise<void>
  /** The same groups, limits and writer for another cell, once no process of this one is left; undefined when they are not as new: then they are to be removed. */
  renewed(): PlannedCellCgroup | undefined
}

export interface CellCgroupOrder {
  readonly hierarchies: readonly Hierarchy[]
  readonly tree: CgroupTree
  /** Name of the cell's folder. */
  readonly name: string
  readonly limits: CgroupLimits
  /** The user that puts guests into their groups; undefined when it is this one. */
  readonly writer?: number | undefined
}

/** Groups that have their names, so that something can be told of them before they are there. */
export interface PlannedCellCgroup {
  readonly cgroup: CellCgroup
  /** When it throws, none is left. */
  readonly build: () => Promise<void>
}

export function planCellCgroup({ hierarchies, tree, name, limits, writer }: CellCgroupOrder): PlannedCellCgroup {
  const levels = hierarchies.map((hierarchy) => levelsOf(hierarchy, new Group(hierarchy.base, tree).below(name)))
  const places = levels.filter(hasRuns)
  const cgroup = new KernelCellCgroup({ levels, writer, limits, runs: createRunGroups({ places, writer, processes: limits.processes }) })
  return { cgroup, build: () => build(cgroup) }
}

export async function createCellCgroup(order: CellCgroupOrder): Promise<CellCgroup> {
  const { cgroup, build } = planCellCgroup(order)
  await build()
  try {
    cgroup.checkBuilt()
    return cgroup
  } catch (error) {
    await cgroup.remove()
    throw error
  }
}

async function build(cell: KernelCellCgroup): Promise<void> {
  try {
    cell.build()
  } catch (error) {
    await cell.remove()
    if (error instanceof SandboxError) throw error
    throw new SandboxError('unsupported', `the kernel refuses these limits: ${(error as Error).message}`, { cause: error })
  }
}

/** Everything of a cell, in every hierarchy. */
export async function removeCellGroups(cells: readonly Group[]): Promise<void> {
  // Nothing can be removed anywhere while a process is frozen in one hierarchy.
  for (const cell of cells) thawDead(cell)
  for (const cell of cells) await cell.remove()
}

function hasRuns({ hierarchy }: Levels): boolean {
  return runControllers(hierarchy).length > 0
}

const mostPlaces = 8
interface CellCgroupParts {
  readonly levels: readonly Levels[]
  readonly writer: number | undefined
  readonly limits: CgroupLimits
  readonly runs: CgroupRuns
}

class KernelCellCgroup implements CellCgroup {
  readonly joins: readonly string[]
  readonly guestJoins: readonly string[]
  readonly runJoins: CellCgroup['runJoins']
  readonly #parts: CellCgroupParts
  #limits: CgroupLimits
  #freezer: Freezer | undefined
  /** Of the latest runs, by their names. */
  readonly #places = new Map<string | undefined, readonly string[]>()

  constructor(parts: CellCgroupParts) {
    const { levels } = parts
    this.#parts = parts
    this.#limits = parts.limits
    this.joins = levels.flatMap(({ hierarchy, cell, warden }) => (warden ? [join(cell.folder, doorOf(hierarchy))] : []))
    this.guestJoins = levels.flatMap((level) => (hasRuns(level) ? [] : [join(level.guest.folder, doorOf(level.hierarchy))]))
    this.runJoins = levels.flatMap((level) => (hasRuns(level) ? [{ folder: level.guest.folder, file: doorOf(level.hierarchy) }] : []))
  }

  /** In version 1 a run can begin from now on, and the first is made ready while the rest of the cell is built. */
  build(): void {
    for (const level of this.#parts.levels) buildGroups(level)
    const bounds = this.#parts.levels.flatMap((level) => settingsOf(level))
    // In version 2 the guests' limits come with `settle`: until then no group beneath the cell's has any.
    for (const { files, group, limitsFrom, isCell, version } of bounds) if (isCell || version === 1) files.limit(group, limitsFrom(this.#limits))
    if (!this.awaitsSettling) this.#parts.runs.prepare()
  }

  get awaitsSettling(): boolean {
    return this.#parts.levels.some(({ hierarchy }) => hierarchy.version === 2)
  }

  settle(): void {
    const unified = this.#parts.levels.filter(({ hierarchy }) => hierarchy.version === 2)
    for (const level of unified) {
      settleGroups(level, this.#parts.writer)
      for (const { files, group, limitsFrom, isCell } of settingsOf(level)) if (!isCell) files.limit(group, limitsFrom(this.#limits))
    }
    if (unified.length > 0) this.#refuseOthers()
  }

  checkBuilt(): void {
    if (!this.awaitsSettling) this.#refuseOthers()
  }

  #refuseOthers(): void {
    const controllers = this.#parts.levels.flatMap(({ hierarchy }) => hierarchy.controllers)
    refuseOtherLimits({ stated: this.stated(), limits: this.#limits, controllers })
  }

  beginRun(limits: CgroupRunLimits): CgroupRun {
    return this.#parts.runs.begin(limits)
  }

  places(run: string | undefined): readonly string[] {
    if (this.#places.size > mostPlaces) this.#places.clear()
    const places = this.#places.get(run) ?? this.#placesOf(run)
    this.#places.set(run, places)
    return places
  }

  #placesOf(run: string | undefined): readonly string[] {
    return this.#parts.levels.map((level) => {
      if (run !== undefined) return (hasRuns(level) ? level.guest.below(run) : level.guest).folder
      // One that was not to stand still with the others is above them.
      return (onlyFreezes(level.hierarchy) ? level.cell : level.guest).folder
    })
  }

  stated(): StatedLimits {
    const nothing: StatedLimits = {
      memoryBytes: undefined,
      cpus: undefined,
      processes: undefined,
      readBytesPerSecond: undefined,
      writeBytesPerSecond: undefined,
    }
    return Object.assign(nothing, ...this.#ask((files, guest) => files.stated(guest, this.#limits))) as StatedLimits
  }

  limit(limits: CgroupLimits): void {
    const from = this.#limits
    changeLimits({
      levels: this.#parts.levels,
      from,
      to: limits,
      check: () => {
        this.#limits = limits
        this.#refuseOthers()
      },
      restore: () => {
        this.#limits = from
      },
    })
    this.#parts.runs.followProcesses(limits.processes)
  }

  usage(): CgroupUsage & CgroupNow & CgroupHits {
    const counted: CgroupUsage & CgroupNow = {
      memoryPeakBytes: undefined,
      cpuMs: undefined,
      processesPeak: undefined,
      memoryBytes: undefined,
      processes: undefined,
    }
    Object.assign(counted, ...this.#ask((files, guest) => ({ ...files.usage(guest), ...files.now(guest) })))
    const own = Object.assign({ oomKills: undefined, processHits: undefined }, ...this.#ask((files, guest) => files.hits(guest))) as CgroupHits
    const runs = this.#parts.runs.hits()
    return { ...counted, oomKills: addKnown(own.oomKills, runs.oomKills), processHits: addKnown(own.processHits, runs.processHits) }
  }

  async freeze(besides: readonly string[] = []): Promise<void> {
    this.#freezer ??= findFreezer(this.#parts.levels)
    if (this.#freezer === undefined) throw new SandboxError('unsupported', 'no cgroup of this cell can be frozen')
    await this.#freezer.freeze(besides)
  }

  async thaw(): Promise<void> {
    await this.#freezer?.thaw()
  }

  killFrozen(): void {
    this.#freezer?.kill()
  }

  kill(): void {
    for (const { hierarchy, cell, guest, warden } of this.#parts.levels)
      for (const group of [onlyFreezes(hierarchy) ? cell : guest, ...(warden ? [warden] : [])]) group.kill()
    // What was killed ends once it is let go; `remove` waits for it.
    void this.#freezer?.release()
  }

  clear(): void {
    this.#parts.runs.clear()
    // One that holds the warden too has to wait for its end.
    for (const { cell, warden, guest } of this.#parts.levels) if (guest.tryRemove() === undefined && warden === undefined && cell !== guest) cell.tryRemove()
  }

  async remove(): Promise<void> {
    this.#parts.runs.stop()
    try {
      const left = this.#parts.levels.filter((level) => !isRemovedAtOnce(level))
      await removeCellGroups(left.map(({ cell }) => cell))
    } finally {
      await this.#freezer?.release()
    }
  }

  renewed(): PlannedCellCgroup | undefined {
    const { levels, limits } = this.#parts
    if (this.#freezer !== undefined || this.#limits !== limits || !renewLevels(levels)) return undefined
    const runs = this.#parts.runs.renewed()
    if (runs === undefined) return undefined
    const build = (): Promise<void> => {
      runs.prepare()
      return Promise.resolve()
    }
    return { cgroup: new KernelCellCgroup({ ...this.#parts, runs }), build }
  }

  #ask(question: (files: ControllerFiles, guest: Group) => object): object[] {
    return this.#parts.levels.flatMap(({ hierarchy, guest }) =>
      hierarchy.controllers.flatMap((name) => controllerFiles[hierarchy.version][name] ?? []).map((files) => question(files, guest)),
    )
  }
}
