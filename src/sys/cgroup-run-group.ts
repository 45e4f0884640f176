import { SandboxError } from '../contract/errors.js'
import type { Group } from './cgroup-files.js'
import { doorOf, type Hierarchy, runControllers } from './cgroup-levels.js'
import { type CgroupHits, type CgroupUsage, type ControllerFiles, controllerFiles } from './cgroup-limits.js'
import type { Controller } from './cgroup-mounts.js'
import type { CgroupRunLimits, RunGroupsOrder, RunPlace } from './cgroup-runs.js'

export const nothing: CgroupUsage & CgroupHits = {
  memoryPeakBytes: undefined,
  cpuMs: undefined,
  processesPeak: undefined,
  oomKills: undefined,
  processHits: undefined,
}

type Counted = { -readonly [Name in keyof (CgroupUsage & CgroupHits)]: number | undefined }

function keepKnown(counted: Counted, answers: Partial<CgroupUsage & CgroupHits>): void {
  for (const name in answers) {
    const known = answers[name as keyof Counted]
    if (known !== undefined) counted[name as keyof Counted] = known
  }
}

/** The groups of one run, one in each hierarchy. */
export class RunGroup {
  readonly name: string
  isOver = false
  readonly #groups: readonly { readonly hierarchy: Hierarchy; readonly guest: Group; readonly group: Group }[]
  readonly #counters: readonly { readonly files: ControllerFiles; readonly group: Group }[]
  #counted = nothing
  #isCertain = true
  #isGone = false
  /** Refused forks that version 2 counts at the cell's guests, when this began, or was given a program. */
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
    this.countFromNow()
    this.followProcesses(processes)
    const asked = { memoryBytes: limits.memoryBytes ?? 0, processes: limits.processes ?? 0, cpus: 0 }
    if (limits.memoryBytes !== undefined) this.#require('memory', 'memory', asked)
    if (limits.processes !== undefined) this.#require('pids', 'processes', asked)
  }

  countFromNow(): void {
    this.#sharedHits = this.#refusedAbove()
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

  /** What it counted last of a run that never had more than its one process, which has ended: nothing was added since. Undefined where that is not certain. */
  get settled(): (CgroupUsage & CgroupHits) | undefined {
    return this.isOver && this.#isCertain && this.#counted.processesPeak === 1 ? this.#counted : undefined
  }

  hasMembers(): boolean {
    return this.#groups.some(({ hierarchy, group }) => (group.read(doorOf(hierarchy)) ?? '') !== '')
  }

  /** What it counts is kept open, so that the end of the run is told sooner. */
  hold(): void {
    for (const { group } of this.#groups) group.hold()
    this.read('usage', 'hits')
    this.#counted = nothing
  }

  letGo(): void {
    for (const { group } of this.#groups) group.letGo()
  }

  /** Without a look at what it counts: whoever wants to know has asked. */
  discard(): void {
    this.#isGone = this.#groups.every(({ group }) => group.tryRemove() === undefined)
    this.letGo()
  }

  /** True only when it is certain that nothing counts here any more, not even a process that has ended and that nobody has heard of yet. */
  get isEmpty(): boolean {
    return this.#groups.find(({ hierarchy }) => hierarchy.controllers.includes('pids'))?.group.number('pids.current') === 0
  }

  /** Where the kernel begins counts anew. */
  get canRenew(): boolean {
    return this.#counters.every(({ files }) => files.renew !== undefined)
  }

  /**
   * Makes of an empty one, which a run is done with, one for another, and says whether it is: that costs a fraction of removing it and making another. Only where the
   * kernel can begin all of its counts anew, and nothing of the run shows in it.
   */
  renew(): boolean {
    const { memoryBytes, processes } = this.#limits
    if (this.#isGone || memoryBytes !== undefined || processes !== undefined) return false
    try {
      if (!this.#counters.every(({ files, group }) => files.renew?.(group) === true)) return false
    } catch {
      return false
    }
    this.#counted = nothing
    this.isOver = false
    return true
  }

  /** What it counted last, or undefined when processes are in it. */
  remove(): CgroupHits | undefined {
    // Whoever wants to know more has asked before.
    const counted = this.#counted === nothing ? this.counts() : this.read('hits')
    this.#isGone = this.#groups.every(({ group }) => group.tryRemove() === undefined)
    if (this.#isGone) this.letGo()
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
