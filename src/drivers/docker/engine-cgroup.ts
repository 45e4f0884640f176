/**
 * The groups that an engine made for a container, where there can be none of ours: the whole container is held to the limits, warden and launcher included, and runs are
 * not told apart. They are only read.
 */
import type { Enforcement } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import type { CellCgroup } from '../../sys/cell-cgroup.js'
import { Group, kernelTree } from '../../sys/cgroup-files.js'
import { type CgroupHits, type CgroupLimits, type CgroupNow, type CgroupUsage, controllerFiles, type StatedLimits } from '../../sys/cgroup-limits.js'
import { type CgroupMount, parseCgroupMounts } from '../../sys/cgroup-mounts.js'
import type { CgroupRun, CgroupRunLimits } from '../../sys/cgroup-runs.js'
import type { CgroupLimit } from '../../sys/cgroups.js'
import { readProc } from '../../sys/posture/proc-files.js'

/** What /info of an engine says of its cgroups. */
export interface EngineGroups {
  readonly CgroupVersion?: string
  readonly MemoryLimit?: boolean
  readonly SwapLimit?: boolean
  readonly CpuCfsQuota?: boolean
}

/** Why some of what cgroups of ours do is not to be had of an engine's. */
export const onlyOneGroup = 'the cgroups are the container engine’s, one for all that is in the container'
const unheld = 'the container engine says that it cannot hold a container to it'
const socketsApart = 'cgroups version 1 count apart what sockets hold, and runtimes of containers do not bound that'

/** What an engine can hold a container to, and nothing less than that. */
export function heldByEngine({ CgroupVersion, MemoryLimit, SwapLimit, CpuCfsQuota }: EngineGroups): Readonly<Record<CgroupLimit, Enforcement>> {
  const yes: Enforcement = { enforced: true, by: 'the cgroup that the container engine makes for the cell' }
  const no = (why: string): Enforcement => ({ enforced: false, why })
  const memory = MemoryLimit !== true || SwapLimit === false ? no(unheld) : CgroupVersion === '2' ? yes : no(socketsApart)
  const alike = no(onlyOneGroup)
  return { memory, cpus: CpuCfsQuota === true ? yes : no(unheld), cpuTime: alike, processes: alike, readRate: alike, writeRate: alike }
}

export function namesHeld(held: Readonly<Record<CgroupLimit, Enforcement>>): readonly CgroupLimit[] {
  return (Object.keys(held) as CgroupLimit[]).filter((name) => held[name].enforced)
}

interface Place {
  readonly version: 1 | 2
  readonly controllers: readonly (keyof (typeof controllerFiles)[1 | 2])[]
  readonly group: Group
}

type Counts = CgroupUsage & CgroupNow & CgroupHits

const nothing: Counts & StatedLimits = {
  memoryPeakBytes: undefined,
  cpuMs: undefined,
  processesPeak: undefined,
  memoryBytes: undefined,
  processes: undefined,
  oomKills: undefined,
  processHits: undefined,
  cpus: undefined,
  readBytesPerSecond: undefined,
  writeBytesPerSecond: undefined,
}

export class EngineCgroup implements CellCgroup {
  readonly guestJoins = []
  readonly runJoins = []
  /** Nothing is begun before the container's first process was found in them. */
  readonly awaitsSettling = true
  readonly states: ReadonlySet<string>
  readonly #limits: CgroupLimits
  readonly #underWay = new Set<EngineRun>()
  #places: readonly Place[] = []

  constructor(limits: CgroupLimits, holds: readonly CgroupLimit[]) {
    this.#limits = limits
    this.states = new Set(holds)
  }

  /** Where the first process of the container is, once it is there. */
  find(pid: number): void {
    const mounts = parseCgroupMounts({ mountinfo: readProc('self', 'mountinfo'), cgroup: readProc(pid, 'cgroup') })
    this.#places = mounts.flatMap(placesIn)
  }

  get joins(): readonly string[] {
    return this.#places.map(({ group }) => group.procs)
  }

  places(): readonly string[] {
    return this.#places.map(({ group }) => group.folder)
  }

  /** Host pids of all that is in the container. */
  processes(): readonly number[] {
    const [place] = this.#places
    return (place?.group.read('cgroup.procs') ?? '')
      .split('\n')
      .map(Number)
      .filter((pid) => pid > 0)
  }

  stated(): StatedLimits {
    return { ...nothing, ...this.#ask((files, group) => files.stated(group, this.#limits)) }
  }

  usage(): Counts {
    return { ...nothing, ...this.#ask((files, group) => ({ ...files.usage(group), ...files.now(group), ...files.hits(group) })) }
  }

  beginRun({ memoryBytes, processes }: CgroupRunLimits): CgroupRun {
    const asked = [memoryBytes !== undefined && 'limits.memory', processes !== undefined && 'limits.processes'].filter((name) => name !== false)
    if (asked.length > 0) throw new SandboxError('unsupported', `${asked.join(', ')} of a single run: ${onlyOneGroup}`, { hint: 'glovebox doctor' })
    return new EngineRun(() => this.usage().oomKills, this.#underWay)
  }

  limit(): void {
    throw new SandboxError('unsupported', `limits of a sandbox that lives cannot be changed: ${onlyOneGroup}; create a new sandbox instead`, {
      hint: 'glovebox run',
    })
  }

  freeze(): Promise<void> {
    return Promise.reject(new SandboxError('unsupported', `programs cannot be paused: ${onlyOneGroup}`, { hint: 'glovebox doctor' }))
  }

  thaw(): Promise<void> {
    return Promise.resolve()
  }

  remove(): Promise<void> {
    return Promise.resolve()
  }

  renewed(): undefined {
    return undefined
  }

  settle(): void {}
  checkBuilt(): void {}
  killFrozen(): void {}
  kill(): void {}
  clear(): void {}

  #ask<T extends object>(question: (files: (typeof controllerFiles)[1]['memory'] & object, group: Group) => T): T {
    const answers = this.#places.flatMap(({ version, controllers, group }) =>
      controllers.flatMap((name) => {
        const files = controllerFiles[version][name]
        return files ? [question(files, group)] : []
      }),
    )
    return Object.assign({}, ...answers) as T
  }
}

/** Of version 2 the controllers are those that there are files of. */
function placesIn({ version, controllers, own }: CgroupMount): Place[] {
  const group = new Group(own, kernelTree)
  const bound = version === 1 ? controllers : (['memory', 'cpu', 'cpuacct', 'pids'] as const).filter((name) => group.has(controllerFiles[2][name]?.needs ?? ''))
  const known = bound.filter((name) => controllerFiles[version][name] !== undefined && name !== 'freezer' && name !== 'blkio')
  return known.length > 0 && group.has('cgroup.procs') ? [{ version, controllers: known, group }] : []
}

/** What was killed for want of memory while it ran; where another ran at the same time nobody can say which of them that was. */
class EngineRun implements CgroupRun {
  readonly name = undefined
  readonly #kills: () => number | undefined
  readonly #others: Set<EngineRun>
  #before: number | undefined
  #isAlone = true

  constructor(kills: () => number | undefined, others: Set<EngineRun>) {
    this.#kills = kills
    this.#others = others
    this.#before = kills()
    for (const other of others) other.#isAlone = this.#isAlone = false
    others.add(this)
  }

  counts(): CgroupUsage & CgroupHits {
    const now = this.#isAlone ? this.#kills() : undefined
    const oomKills = now === undefined || this.#before === undefined ? undefined : now - this.#before
    return { memoryPeakBytes: undefined, cpuMs: undefined, processesPeak: undefined, oomKills, processHits: undefined }
  }

  countFromNow(): void {
    this.#before = this.#kills()
    this.#isAlone = this.#others.size === 1
  }

  isPopulated(): boolean {
    return false
  }

  spareTime(): void {}

  close(): void {
    this.#others.delete(this)
  }
}
