import type { CellRun, CellSpec, CellUsage, RunCounts, RunLimits } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { LimitName, Limits } from '../contract/limits.js'
import { findBlockDevices } from '../sys/block-devices.js'
import type { CellCgroup } from '../sys/cell-cgroup.js'
import type { CgroupHits, CgroupLimits, CgroupUsage } from '../sys/cgroup-limits.js'
import type { CgroupRates } from '../sys/cgroup-rates.js'

/** What a cell is held to, and what it used. */
export interface CellLimits {
  beginRun(limits: RunLimits): CellRun
  usage(): CellUsage
  limit(limits: Limits): Promise<void>
  /** Those that hold now. */
  current(): Limits
}

export interface CellLimitsOrder {
  readonly spec: CellSpec
  readonly cgroup: CellCgroup | undefined
  /** Gives the cell's disk another size, or throws and leaves it. */
  readonly resizeDisk: (limits: Limits) => Promise<void>
}

const anew = 'glovebox run'

export function createCellLimits({ spec, cgroup, resizeDisk }: CellLimitsOrder): CellLimits {
  let current = spec.limits
  let last: Promise<unknown> = Promise.resolve()
  const change = async (limits: Limits): Promise<void> => {
    const names = changed(current, limits)
    refuseUnheld(names, cgroup)
    const isDisk = names.some((name) => !held.includes(name))
    if (isDisk) await resizeDisk(limits)
    try {
      if (cgroup !== undefined && names.some((name) => held.includes(name))) cgroup.limit(cgroupLimits(spec, limits))
    } catch (error) {
      if (isDisk) await resizeDisk(current)
      throw error
    }
    current = limits
  }
  return {
    beginRun: (limits) => beginRun(cgroup, limits),
    usage: () => usageOf(cgroup),
    current: () => current,
    limit(limits) {
      const next = last.then(() => change(limits))
      last = next.catch(() => undefined)
      return next
    },
  }
}

/** Limits as cgroups take them. Throws SandboxError('unsupported') for a rate that would not hold for everything the cell shows. */
export function cgroupLimits(spec: CellSpec, { memoryBytes, cpus, processes, readBytesPerSecond, writeBytesPerSecond }: Limits): CgroupLimits {
  const limits = { memoryBytes, cpus, processes }
  const isHeld = readBytesPerSecond !== undefined || writeBytesPerSecond !== undefined
  // Only then is it worth looking for the disks; a rate that is not wanted any more is lifted from those that had it.
  return isHeld ? { ...limits, rates: ratesFor(spec, { readBytesPerSecond, writeBytesPerSecond }) } : limits
}

function ratesFor({ root, mounts }: CellSpec, rates: Omit<CgroupRates, 'devices'>): CgroupRates {
  const { devices, without } = findBlockDevices([...root.binds, ...mounts].map(({ source }) => source))
  const limit = rates.readBytesPerSecond === undefined ? 'writeRate' : 'readRate'
  const [lost] = without
  if (lost !== undefined) throw unenforceable(limit, `${lost.path} lies on ${lost.type}, which has no block device of its own`)
  if (devices.length === 0) throw unenforceable(limit, 'nothing that the cell shows lies on a block device')
  const [unattributed] = findBlockDevices(mounts.flatMap(({ mode, source }) => (mode === 'rw' ? [source] : []))).unattributed
  if (rates.writeBytesPerSecond !== undefined && unattributed !== undefined)
    throw unenforceable('writeRate', `${unattributed.path} lies on ${unattributed.type}, whose later writes the kernel counts for nobody`)
  return { ...rates, devices }
}

function unenforceable(limit: LimitName, why: string): SandboxError {
  return new SandboxError('unsupported', `limits.${limit} cannot be enforced: ${why}`, { hint: 'findmnt -T /usr' })
}

const valueNames = {
  memory: 'memoryBytes',
  cpus: 'cpus',
  processes: 'processes',
  readRate: 'readBytesPerSecond',
  writeRate: 'writeBytesPerSecond',
  disk: 'diskBytes',
  inodes: 'inodes',
} as const satisfies Partial<Record<LimitName, keyof Limits>>
type Changeable = keyof typeof valueNames

/** By cgroups; the others are the size of the cell's disk. What is not named at all is given to each program anew, by the engine. */
const held: readonly Changeable[] = ['memory', 'cpus', 'processes', 'readRate', 'writeRate']

function changed(from: Limits, to: Limits): Changeable[] {
  return (Object.keys(valueNames) as Changeable[]).filter((name) => from[valueNames[name]] !== to[valueNames[name]])
}

function refuseUnheld(names: readonly Changeable[], cgroup: CellCgroup | undefined): void {
  const whys = names.flatMap((name) => {
    const why = held.includes(name) ? unheld(name, cgroup) : undefined
    return why === undefined ? [] : [`limits.${name} cannot be changed: ${why}`]
  })
  if (whys.length > 0) throw new SandboxError('unsupported', `${whys.join('; ')}; create a new sandbox instead`, { hint: anew })
}

/** Why no cgroup of this cell holds a limit; undefined when one does. */
function unheld(name: Changeable, cgroup: CellCgroup | undefined): string | undefined {
  if (name === 'readRate' || name === 'writeRate') return cgroup === undefined ? 'no cgroup holds this cell' : undefined
  const stated = name === 'memory' || name === 'cpus' || name === 'processes' ? cgroup?.stated()[valueNames[name]] : undefined
  return stated === undefined ? 'no cgroup of this cell holds it' : undefined
}

function beginRun(cgroup: CellCgroup | undefined, limits: RunLimits): CellRun {
  if (cgroup === undefined) return withoutGroup(limits)
  const run = cgroup.beginRun(limits)
  return {
    group: run.name,
    usage: () => countsOf(run.counts()),
    countFromNow: () => run.countFromNow(),
    isPopulated: () => run.isPopulated(),
    spareTime: () => run.spareTime(),
    close: () => {
      run.close()
      return Promise.resolve()
    },
  }
}

/** Processes are then held by an rlimit of the program's; memory by nothing. */
function withoutGroup({ memoryBytes }: RunLimits): CellRun {
  if (memoryBytes !== undefined)
    throw new SandboxError('unsupported', 'limits.memory of a single run: no cgroup can be made for it', { hint: 'glovebox doctor' })
  return {
    group: undefined,
    usage: () => countsOf(undefined),
    countFromNow: () => undefined,
    isPopulated: () => false,
    spareTime: () => undefined,
    close: () => Promise.resolve(),
  }
}

function usageOf(cgroup: CellCgroup | undefined): CellUsage {
  const counted = cgroup?.usage()
  return { ...countsOf(counted), memoryBytes: counted?.memoryBytes, processes: counted?.processes }
}

function countsOf(counted: (CgroupUsage & CgroupHits) | undefined): RunCounts {
  return {
    cpuMs: counted?.cpuMs,
    memoryPeakBytes: counted?.memoryPeakBytes,
    processesPeak: counted?.processesPeak,
    hits: { memory: counted?.oomKills, processes: counted?.processHits },
  }
}
