import { SandboxError } from '../contract/errors.js'
import type { Group } from './cgroup-files.js'
import type { Hierarchy } from './cgroup-levels.js'
import type { CgroupHits, CgroupUsage } from './cgroup-limits.js'
import { nothing, RunGroup } from './cgroup-run-group.js'

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
  /** What others met until now is not of this run. */
  countFromNow(): void
  /** Whether processes of it are left; false where nothing counts runs by themselves. */
  isPopulated(): boolean
  /** Its program is on its way and nobody waits: from the second run on, the group of the next is made meanwhile. */
  spareTime(): void
  /** The group goes to another run or is removed soon, unless processes of the run are left: then it stays until it is empty or the cell is removed. Idempotent. */
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
  /** No group is made any more, and those of runs that are over go if they can. */
  stop(): void
  /** No group is made any more, and those that no run is in go now. */
  clear(): void
  /** The same for another cell, with the groups that are left; undefined when what was done in them would show. These are stopped. */
  renewed(): CgroupRuns | undefined
}

export interface RunGroupsOrder {
  readonly places: readonly RunPlace[]
  /** The user that puts runs into their groups; undefined when it is who made the cell. */
  readonly writer: number | undefined
  readonly processes: number
}

/** Groups of another cell's runs, which are as new. */
interface Inherited {
  readonly spare: readonly RunGroup[]
  /** How many names were given. */
  readonly made: number
}

export function createRunGroups(order: RunGroupsOrder): CgroupRuns {
  return order.places.length === 0 ? uncounted : new RunGroups(order)
}

const uncounted: CgroupRuns = {
  begin({ memoryBytes, processes }) {
    const asked = [memoryBytes !== undefined && 'limits.memory', processes !== undefined && 'limits.processes'].filter((name) => name !== false)
    if (asked.length > 0) throw new SandboxError('unsupported', `${asked.join(', ')} of a single run: no cgroup can be made for it`)
    return {
      name: undefined,
      counts: () => nothing,
      countFromNow: () => undefined,
      isPopulated: () => false,
      spareTime: () => undefined,
      close: () => undefined,
    }
  },
  prepare: () => undefined,
  hits: () => ({ oomKills: undefined, processHits: undefined }),
  followProcesses: () => undefined,
  stop: () => undefined,
  clear: () => undefined,
  renewed: () => uncounted,
}

/** So many runs at once have their counts kept open. */
const mostHeld = 32
/** One for the next run, and one for that which is made ready meanwhile. */
const mostSpare = 2

/** A run that has a group, until that is another's. */
interface Tenant {
  /** What it counted, once nothing of it is left. */
  last: (CgroupUsage & CgroupHits) | undefined
  /** Its program has ended, and is not let go of yet: the kernel counts it a little longer. */
  wasLate: boolean
  /** It could not be made as new: it serves nobody any more. */
  isWorn: boolean
}

class RunGroups implements CgroupRuns {
  readonly #order: RunGroupsOrder
  readonly #open = new Map<RunGroup, Tenant>()
  /** What the groups that are gone had counted. */
  #past: CgroupHits = { oomKills: undefined, processHits: undefined }
  #made = 0
  #begun = 0
  #processes: number
  /** Made, or made as new, while nobody waits for them. */
  #spare: RunGroup[] = []
  /** Of a run that is over and that none has followed: to remove it, and to make another, is dear where there are many cells. */
  #resting: RunGroup | undefined
  /** Others follow, for which groups are made ahead. */
  #isBusy = false
  #preparing: NodeJS.Immediate | undefined
  #tidying: NodeJS.Immediate | undefined
  #isStopped = false

  constructor(order: RunGroupsOrder, inherited?: Inherited) {
    this.#order = order
    this.#processes = order.processes
    this.#spare.push(...(inherited?.spare ?? []))
    this.#made = inherited?.made ?? 0
  }

  begin(limits: CgroupRunLimits): CgroupRun {
    if (this.#isStopped) throw new SandboxError('closed', 'the cgroups of this cell are removed')
    if ([...this.#open.keys()].some(({ isOver }) => isOver)) this.#tidySoon()
    this.#begun += 1
    // What was to be made for the next run is made now, or there already.
    this.#dropPreparing()
    const group = this.#spare.shift() ?? this.#wake() ?? this.#make()
    const tenant: Tenant = { last: undefined, wasLate: false, isWorn: false }
    this.#open.set(group, tenant)
    try {
      group.limit(limits, this.#processes)
    } catch (error) {
      this.#close(group)
      throw error
    }
    return {
      name: group.name,
      counts: () => tenant.last ?? group.counts(),
      countFromNow: () => {
        if (!tenant.last) group.countFromNow()
      },
      isPopulated: () => !tenant.last && this.#isPopulated(group),
      spareTime: () => {
        // Whoever runs a single command, as most do, is not to pay for the group of another.
        this.#isBusy ||= this.#begun > 1
        if (this.#isBusy) this.prepare()
      },
      close: () => {
        if (!tenant.last) this.#close(group)
      },
    }
  }

  prepare(): void {
    this.#preparing ??= setImmediate(() => this.#prepare()).unref()
  }

  hits(): CgroupHits {
    return [...this.#open.keys()].map((group) => group.read('hits')).reduce(addHits, this.#past)
  }

  followProcesses(processes: number): void {
    this.#processes = processes
    for (const group of this.#open.keys()) group.followProcesses(processes)
  }

  renewed(): CgroupRuns | undefined {
    this.#halt()
    const over = [...this.#open.keys()]
    if (!over.every((group) => group.isOver && group.isEmpty && group.renew())) return undefined
    this.#open.clear()
    const [kept, others] = [this.#spare.concat(over).slice(0, mostSpare), this.#spare.concat(over).slice(mostSpare)]
    this.#spare = []
    for (const group of others) group.discard()
    return new RunGroups(this.#order, { spare: kept, made: this.#made })
  }

  #dropPreparing(): void {
    clearImmediate(this.#preparing)
    this.#preparing = undefined
  }

  #halt(): void {
    this.#isStopped = true
    this.#dropPreparing()
    clearImmediate(this.#tidying)
  }

  clear(): void {
    this.#halt()
    for (const group of this.#spare.splice(0)) group.discard()
    for (const group of this.#open.keys()) if (group.isOver) group.discard()
  }

  stop(): void {
    this.clear()
    for (const group of this.#open.keys()) if (!group.isOver) group.letGo()
  }

  #make(): RunGroup {
    this.#made += 1
    return new RunGroup(`r${this.#made.toString(36)}`, this.#order)
  }

  #prepare(): void {
    this.#preparing = undefined
    if (this.#isStopped || this.#spare.length > 0) return
    try {
      const group = this.#make()
      this.#spare.push(group)
      if (this.#open.size < mostHeld) group.hold()
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
    for (const [group, tenant] of this.#open) if (group.isOver && !this.#keep(group, tenant)) this.#tryRemove(group)
  }

  /** Asked when a run has just ended, which nobody is to wait for longer than a list takes; one that is over and empty is removed soon. */
  #isPopulated(group: RunGroup): boolean {
    if (this.#isStopped || !this.#open.has(group)) return false
    if (!group.isOver || group.hasMembers()) return true
    this.#tidySoon()
    return false
  }

  /** As new, if that can be. */
  #wake(): RunGroup | undefined {
    const group = this.#resting
    this.#resting = undefined
    const tenant = group && this.#open.get(group)
    if (!tenant || !group.isEmpty) return undefined
    tenant.isWorn = !this.#renew(group, tenant)
    return tenant.isWorn ? undefined : this.#spare.pop()
  }

  /** For another run: which looks again when it is too early. */
  #keep(group: RunGroup, tenant: Tenant): boolean {
    if (tenant.isWorn || this.#spare.length >= mostSpare) return false
    if (!this.#isBusy) {
      if (group.canRenew) this.#resting ??= group
      return this.#resting === group
    }
    if (!group.isEmpty) {
      const isLate = tenant.wasLate
      tenant.wasLate = true
      return !isLate
    }
    return this.#renew(group, tenant)
  }

  #renew(group: RunGroup, tenant: Tenant): boolean {
    tenant.last ??= group.settled ?? group.counts()
    if (!group.renew()) return false
    this.#open.delete(group)
    this.#past = addHits(this.#past, tenant.last)
    this.#spare.push(group)
    return true
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
