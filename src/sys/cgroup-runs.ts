import { SandboxError } from '../contract/errors.js'
import type { Group } from './cgroup-files.js'
import { doorOf, type Hierarchy, runControllers } from './cgroup-levels.js'
import { type CgroupHits, type CgroupUsage, type ControllerFiles, controllerFiles } from './cgroup-limits.js'
import type { Controller } from './cgroup-mounts.js'

/** The groups in which the runs of one cell are counted, and may be held below the cell's own limits, one by one. */

/** Where each run has a group of its own below `guest`. */
export interface RunPlace {
  readonly hierarchy: Hierarchy
  readonly guest: Group
}

export interface CgroupRunLimits {
  readonly memoryBytes: number | undefined
  readonly processes: number | undefined
}

export interface CgroupRun {
  /** Undefined where nothing counts runs by themselves. */
  readonly name: string | undefined
  /** Also of a run that is over. */
  counts(): CgroupUsage & CgroupHits
  /** Whether processes of it are left; false where nothing counts runs by themselves. */
  isPopulated(): boolean
  /** Its program is on its way and nobody waits: the group of the next run is made meanwhile. */
  spareTime(): void
  /** Removes the group soon, unless processes of the run are left: then it stays until it is empty or the cell is removed. Idempotent. */
  close(): void
}

export interface CgroupRuns {
  begin(limits: CgroupRunLimits): CgroupRun
  /** The group of the next run is made when nothing else is to be done. */
  prepare(): void
  /** Of all runs that were and are. */
  hits(): CgroupHits
  /** The processes that the cell's guests may have from now on, all together. */
  followProcesses(processes: number): void
  /** No group is made any more. */
  stop(): void
}

export interface RunGroupsOrder {
  readonly places: readonly RunPlace[]
  /** The user that puts runs into their groups; undefined when it is who made the cell. */
  readonly writer: number | undefined
  readonly processes: number
}

const nothing: CgroupUsage & CgroupHits = {
  memoryPeakBytes: undefined,
  cpuMs: undefined,
  processesPeak: undefined,
  oomKills: undefined,
  processHits: undefined,
}

export function createRunGroups(order: RunGroupsOrder): CgroupRuns {
  return order.places.length === 0 ? uncounted : new RunGroups(order)
}

const uncounted: CgroupRuns = {
  begin({ memoryBytes, processes }) {
    const asked = [memoryBytes !== undefined && 'limits.memory', processes !== undefined && 'limits.processes'].filter((name) => name !== false)
    if (asked.length > 0) throw new SandboxError('unsupported', `${asked.join(', ')} of a single run: no cgroup can be made for it`)
    return { name: undefined, counts: () => nothing, isPopulated: () => false, spareTime: () => undefined, close: () => undefined }
  },
  prepare: () => undefined,
  hits: () => ({ oomKills: undefined, processHits: undefined }),
  followProcesses: () => undefined,
  stop: () => undefined,
}

type Counted = { -readonly [Name in keyof (CgroupUsage & CgroupHits)]: number | undefined }

function keepKnown(counted: Counted, answers: Partial<CgroupUsage & CgroupHits>): void {
  for (const name in answers) {
    const known = answers[name as keyof Counted]
    if (known !== undefined) counted[name as keyof Counted] = known
  }
}

class RunGroups implements CgroupRuns {
  readonly #order: RunGroupsOrder
  readonly #open = new Set<RunGroup>()
  /** What the groups that are gone had counted. */
  #past: CgroupHits = { oomKills: undefined, processHits: undefined }
  #made = 0
  #processes: number
  /** Made while nobody waits for it. */
  #next: RunGroup | undefined
  #preparing: NodeJS.Immediate | undefined
  #tidying: NodeJS.Immediate | undefined
  #isStopped = false

  constructor(order: RunGroupsOrder) {
    this.#order = order
    this.#processes = order.processes
  }

  begin(limits: CgroupRunLimits): CgroupRun {
    if (this.#isStopped) throw new SandboxError('closed', 'the cgroups of this cell are removed')
    if ([...this.#open].some(({ isOver }) => isOver)) this.#tidySoon()
    const group = this.#next ?? this.#make()
    this.#next = undefined
    this.#open.add(group)
    try {
      group.limit(limits, this.#processes)
    } catch (error) {
      this.#close(group)
      throw error
    }
    return {
      name: group.name,
      counts: () => group.counts(),
      isPopulated: () => this.#isPopulated(group),
      spareTime: () => this.prepare(),
      close: () => this.#close(group),
    }
  }

  prepare(): void {
    this.#preparing ??= setImmediate(() => this.#prepare()).unref()
  }

  hits(): CgroupHits {
    return [...this.#open].map((group) => group.read('hits')).reduce(addHits, this.#past)
  }

  followProcesses(processes: number): void {
    this.#processes = processes
    for (const group of this.#open) group.followProcesses(processes)
  }

  stop(): void {
    this.#isStopped = true
    clearImmediate(this.#preparing)
    clearImmediate(this.#tidying)
    this.#next?.remove()
    this.#next = undefined
  }

  #make(): RunGroup {
    this.#made += 1
    return new RunGroup(`r${this.#made.toString(36)}`, this.#order)
  }

  #prepare(): void {
    this.#preparing = undefined
    if (this.#isStopped || this.#next !== undefined) return
    try {
      this.#next = this.#make()
    } catch {
      // Whoever begins the next run is told why there can be none.
    }
  }

  /** Whoever waits for the end of the run need not wait for this. */
  #close(group: RunGroup): void {
    group.isOver = true
    if (!this.#isStopped) this.#tidySoon()
  }

  #tidySoon(): void {
    this.#tidying ??= setImmediate(() => this.#tidy())
  }

  #tidy(): void {
    this.#tidying = undefined
    for (const group of this.#open) if (group.isOver) this.#tryRemove(group)
  }

  /** Asked when a run has just ended, which nobody is to wait for longer than a list takes; one that is over and empty is removed soon. */
  #isPopulated(group: RunGroup): boolean {
    if (this.#isStopped || !this.#open.has(group)) return false
    if (!group.isOver || group.hasMembers()) return true
    this.#tidySoon()
    return false
  }

  #tryRemove(group: RunGroup): void {
    const counted = group.remove()
    if (counted === undefined) return
    this.#open.delete(group)
    this.#past = addHits(this.#past, counted)
  }
}

function addHits(one: CgroupHits, other: CgroupHits): CgroupHits {
  return { oomKills: addKnown(one.oomKills, other.oomKills), processHits: addKnown(one.processHits, other.processHits) }
}

export function addKnown(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined ? other : one + (other ?? 0)
}

/** The groups of one run, one in each hierarchy. */
class RunGroup {
  readonly name: string
  isOver = false
  readonly #groups: readonly { readonly hierarchy: Hierarchy; readonly guest: Group; readonly group: Group }[]
  readonly #counters: readonly { readonly files: ControllerFiles; readonly group: Group }[]
  #counted = nothing
  #isCertain = true
  #isGone = false
  /** Refused forks that version 2 counts at the cell's guests, when this began. */
  #sharedHits: number | undefined
  #limits: CgroupRunLimits = { memoryBytes: undefined, processes: undefined }

  constructor(name: string, { places, writer }: RunGroupsOrder) {
    this.name = name
    this.#groups = places.map(({ hierarchy, guest }) => ({ hierarchy, guest, group: guest.below(name) }))
    this.#counters = this.#groups.flatMap(({ hierarchy, group }) =>
      runControllers(hierarchy).flatMap((name) => {
        const files = controllerFiles[hierarchy.version][name]
        return files === undefined ? [] : [{ files, group }]
      }),
    )
    try {
      for (const { hierarchy, group } of this.#groups) {
        group.make()
        for (const name of runControllers(hierarchy)) controllerFiles[hierarchy.version][name]?.inherit?.(group)
        if (writer !== undefined) group.giveDoor(doorOf(hierarchy), writer)
      }
    } catch (error) {
      this.remove()
      throw new SandboxError('unavailable', `no cgroup can be made for a run: ${(error as Error).message}`, { cause: error })
    }
  }

  limit(limits: CgroupRunLimits, processes: number): void {
    this.#limits = limits
    this.#sharedHits = this.#refusedAbove()
    this.followProcesses(processes)
    const asked = { memoryBytes: limits.memoryBytes ?? 0, processes: limits.processes ?? 0, cpus: 0 }
    if (limits.memoryBytes !== undefined) this.#require('memory', 'memory', asked)
    if (limits.processes !== undefined) this.#require('pids', 'processes', asked)
  }

  /** Where a refused fork is counted at the limit that it met, a run without one of its own gets the cell's, so that it counts its own. */
  followProcesses(processes: number): void {
    if (this.#limits.processes !== undefined || this.#refusedAbove() === undefined) return
    for (const { hierarchy, group } of this.#groups) if (hierarchy.controllers.includes('pids')) group.write('pids.max', `${processes}`)
  }

  /** What can be said of this run alone. */
  counts(): CgroupUsage & CgroupHits {
    const counted = this.read('usage', 'hits')
    const { processesPeak } = counted
    // A fork that is refused further up was counted here for a moment.
    const most = processesPeak === undefined || processesPeak <= 1 || this.#isGone ? undefined : this.#pids()?.guest.number('pids.peak')
    if (processesPeak !== undefined && most !== undefined && most < processesPeak) this.#counted = { ...counted, processesPeak: most }
    return this.#isCertain ? this.#counted : { ...this.#counted, processHits: undefined }
  }

  /** A hierarchy in which the group is gone already keeps what it said last. */
  read(...questions: ('usage' | 'hits')[]): CgroupUsage & CgroupHits {
    if (this.#isGone) return this.#counted
    const counted: Counted = { ...this.#counted }
    for (const { files, group } of this.#counters) for (const question of questions) keepKnown(counted, files[question](group))
    this.#counted = counted
    this.#isCertain = this.#refusedAbove() === this.#sharedHits
    return this.#counted
  }

  hasMembers(): boolean {
    return this.#groups.some(({ hierarchy, group }) => (group.read(doorOf(hierarchy)) ?? '') !== '')
  }

  /** What it counted last, or undefined when processes are in it. */
  remove(): CgroupHits | undefined {
    // Whoever wants to know more has asked before.
    const counted = this.#counted === nothing ? this.counts() : this.read('hits')
    this.#isGone = this.#groups.every(({ group }) => group.tryRemove() === undefined)
    return this.#isGone ? counted : undefined
  }

  /** Whose fork met the limit of all guests together is not told by a kernel that counts it there. */
  #refusedAbove(): number | undefined {
    const place = this.#pids()
    return place?.hierarchy.version === 2 ? place.guest.keyed('pids.events.local', 'max') : undefined
  }

  #pids(): RunPlace | undefined {
    return this.#groups.find(({ hierarchy }) => hierarchy.controllers.includes('pids'))
  }

  #require(controller: Controller, limit: string, asked: { memoryBytes: number; processes: number; cpus: number }): void {
    const place = this.#groups.find(({ hierarchy }) => hierarchy.controllers.includes(controller))
    const files = place && controllerFiles[place.hierarchy.version][controller]
    if (place === undefined || files === undefined) throw new SandboxError('unsupported', `limits.${limit} of a single run: nothing here enforces it`)
    files.limit(place.group, asked)
    const stated = files.stated(place.group, asked)
    const bound = limit === 'memory' ? stated.memoryBytes : stated.processes
    const wanted = limit === 'memory' ? asked.memoryBytes : asked.processes
    if (bound === undefined || bound > wanted) throw new SandboxError('unsupported', `limits.${limit} of a single run: the kernel states ${bound ?? 'none'}`)
  }
}
