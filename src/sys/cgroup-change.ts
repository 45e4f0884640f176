import { SandboxError } from '../contract/errors.js'
import { bytesInUnits } from '../contract/quantities.js'
import { type Levels, type Setting, settingsOf } from './cgroup-levels.js'
import type { CgroupLimits } from './cgroup-limits.js'

export interface LimitChange {
  readonly levels: readonly Levels[]
  readonly from: CgroupLimits
  readonly to: CgroupLimits
  /** Throws when the kernel does not state the new limits. */
  readonly check: () => void
  readonly restore: () => void
}

/**
 * All or none. What is lowered comes first, because it may be refused and can always be raised again; the guests' before the cell's, so that the
 * guests' is never the larger one. What is raised follows the other way round, memory last, because nobody gives memory back.
 */
export function changeLimits({ levels, check, restore, ...change }: LimitChange): void {
  const devices = change.to.rates?.devices ?? change.from.rates?.devices ?? []
  const [from, to] = [withRates(change.from, devices), withRates(change.to, devices)]
  const done: Setting[] = []
  try {
    for (const setting of inOrder(levels.flatMap(settingsOf), from, to)) {
      done.push(setting)
      set(setting, to)
    }
    check()
  } catch (error) {
    restore()
    undo(done, from)
    if (error instanceof SandboxError) throw error
    throw new SandboxError('unsupported', `the kernel refuses these limits: ${(error as Error).message}`, { cause: error })
  }
}

/** So that a rate that is not wanted any more is lifted by name. */
function withRates(limits: CgroupLimits, devices: readonly string[]): CgroupLimits {
  return { ...limits, rates: { readBytesPerSecond: undefined, writeBytesPerSecond: undefined, ...limits.rates, devices } }
}

function inOrder(settings: readonly Setting[], from: CgroupLimits, to: CgroupLimits): Setting[] {
  const change = (setting: Setting): number => valueOf(setting, to) - valueOf(setting, from)
  const byGroup = (one: Setting, other: Setting): number => Number(one.isCell) - Number(other.isCell)
  const byMemory = (one: Setting, other: Setting): number => Number(one.controller === 'memory') - Number(other.controller === 'memory')
  const lowered = settings.filter((setting) => change(setting) < 0).toSorted(byGroup)
  const raised = settings.filter((setting) => change(setting) > 0).toSorted((one, other) => byMemory(one, other) || byGroup(other, one))
  // Of two rates one may rise while the other falls; both are one write.
  const rates = settings.filter((setting) => change(setting) === 0 && isRate(setting) && !isSameRate(from, to))
  return [...lowered, ...rates, ...raised]
}

function isRate({ controller }: Setting): boolean {
  return controller === 'blkio' || controller === 'io'
}

function isSameRate(one: CgroupLimits, other: CgroupLimits): boolean {
  return one.rates?.readBytesPerSecond === other.rates?.readBytesPerSecond && one.rates?.writeBytesPerSecond === other.rates?.writeBytesPerSecond
}

function valueOf({ controller, limitsFrom }: Setting, limits: CgroupLimits): number {
  const { memoryBytes, cpus, processes } = limitsFrom(limits)
  if (controller === 'memory') return memoryBytes
  if (controller === 'cpu') return cpus
  return controller === 'pids' ? processes : 0
}

function set({ controller, files, group, limitsFrom }: Setting, limits: CgroupLimits): void {
  const wanted = limitsFrom(limits)
  try {
    files.limit(group, wanted)
  } catch (error) {
    if (controller === 'memory' && (error as NodeJS.ErrnoException).code === 'EBUSY') throw memoryInUse(files.now(group).memoryBytes, wanted.memoryBytes)
    throw error
  }
  // The kernel takes any number of processes, and only refuses the next.
  const { processes } = files.now(group)
  if (controller !== 'pids' || processes === undefined || processes <= wanted.processes) return
  throw new SandboxError('conflict', `limits.processes: ${processes} are running, and ${wanted.processes} were asked for`)
}

function memoryInUse(used: number | undefined, wanted: number): SandboxError {
  const [much, most] = [used === undefined ? 'more' : bytesInUnits(used, Math.ceil), bytesInUnits(wanted, Math.floor)]
  return new SandboxError('conflict', `limits.memory: ${much} is in use, and ${most} was asked for`)
}

function undo(done: readonly Setting[], from: CgroupLimits): void {
  for (const { files, group, limitsFrom } of done.toReversed()) {
    try {
      files.limit(group, limitsFrom(from))
    } catch (error) {
      throw new SandboxError('broken', `the limits of this cell are neither the old nor the new: ${(error as Error).message}`, { cause: error })
    }
  }
}
