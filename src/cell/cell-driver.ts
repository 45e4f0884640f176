import type { Cell, CellSpec, Driver } from '../contract/driver.js'
import type { CgroupLimits } from '../sys/cgroup-limits.js'
import { type Cgroups, type CgroupsUnavailable, detectCgroups } from '../sys/cgroups.js'
import { type MountSources, openMountSources } from '../sys/mount-source.js'
import { nativeProgram } from '../sys/native.js'
import type { CellPlan, CellPrograms } from './arguments.js'
import { type OwnPosture, readOwnPosture } from './cell-posture.js'
import { createCellSpawner, spawnDirectly } from './cell-spawner.js'
import { type HostFacts, readIdFacts } from './facts.js'
import type { FirstProcessOptions } from './first-process.js'
import { canMapRanges } from './judgement.js'
import { createLessor, type Lease, type Lessor } from './lease.js'
import { checkLiners, checkRootMode, mountFailure } from './mount-refusals.js'
import { type DiskPlace, type Inspect, openCell } from './open-cell.js'
import { type Mechanism, probeHost } from './probe.js'
import type { TrialMemory } from './trial-memory.js'
import { createVeilMemory } from './veil-memory.js'

export interface CellDriverOptions {
  /** What holds memory and processor limits; sought on this machine unless given. */
  readonly cgroups?: Cgroups | CgroupsUnavailable
  /** Where it is remembered that cells open here; each driver tries for itself unless given. */
  readonly trials?: TrialMemory
}

/** How one mechanism starts a cell for which everything else is there. */
export interface Preparation extends FirstProcessOptions {
  /** The lease, with what the mechanism adds to it. */
  readonly lease: Lease
  readonly argv: (plan: CellPlan) => [string, ...string[]]
  /** Of the descriptors through which guests enter their cgroups. */
  readonly firstDoor?: number
  /** How the cell is looked at, where that is not as any other. */
  readonly inspect?: Inspect
  /** A process in whose mounts the cell's disk lies, and where; the first process and /dev/shm when not given. */
  readonly disk?: DiskPlace
  /** What else there is to say of a cell that ended early; empty when nothing. */
  readonly remark?: () => string
}

export interface CellDriverOrder<Facts extends HostFacts, Programs extends CellPrograms> extends CellDriverOptions {
  readonly mechanism: Mechanism<Facts>
  /** Another launcher than ours may know less. */
  readonly isOwnLauncher: boolean
  /** Throws SandboxError('unavailable') where one is missing. */
  findPrograms(): Programs
  /** Of a lease that is released by the caller when this throws. */
  prepare(order: { readonly spec: CellSpec; readonly lease: Lease; readonly programs: Programs }): Preparation | Promise<Preparation>
  /** What the groups of a cell are set to, given its limits; these when not given. */
  readonly limitsOfGroups?: (limits: CgroupLimits) => CgroupLimits
}

/** A driver of cells of namespaces. Nothing is touched before it is used. */
export function createCellDriver<Facts extends HostFacts, Programs extends CellPrograms>(order: CellDriverOrder<Facts, Programs>): Driver {
  const { mechanism } = order
  const cgroups = remember(() => new Promise<Cgroups | CgroupsUnavailable>((resolve) => resolve(order.cgroups ?? detectCgroups())), always)
  const hasRanges = remember(() => Promise.resolve(canMapRanges(readIdFacts())), always)
  const lessor = remember(
    async (): Promise<Lessor> => createLessor({ hasRanges: await hasRanges(), cgroups: await cgroups(), limitsOf: order.limitsOfGroups }),
    always,
  )
  const own = remember(() => new Promise<OwnPosture>((resolve) => resolve(readOwnPosture())), always)
  const programs = remember(() => new Promise<Programs>((resolve) => resolve(order.findPrograms())), always)
  const veils = createVeilMemory()
  const spawn = order.isOwnLauncher ? createCellSpawner(() => nativeProgram('launcher')) : spawnDirectly
  const openWith = async (spec: CellSpec, sources: MountSources, signal: AbortSignal): Promise<Cell> => {
    const [posture, found] = await Promise.all([own(), programs()])
    const prepared = await prepare(order, { spec, lease: (await lessor()).lease(spec), programs: found })
    try {
      const unveilable = veils.unveilable()
      return await openCell({ ...prepared, spec, signal, spawn, own: posture, unveilable, sources: sources.list, programs: found, wordsOf: mechanism.wordsOf })
    } catch (error) {
      if (veils.learn(error, spec.root)) return openWith(spec, sources, signal)
      if (!signal.aborted) order.trials?.forget()
      throw mountFailure(error, spec.mounts)
    }
  }
  const open = async (spec: CellSpec, signal: AbortSignal): Promise<Cell> => {
    signal.throwIfAborted()
    const ids = (await hasRanges()) ? 'range' : 'single'
    checkRootMode(spec, ids)
    checkLiners(spec)
    const sources = openMountSources(spec.mounts, ids)
    try {
      return await openWith(spec, sources, signal)
    } finally {
      sources.close()
    }
  }
  const probe = remember(
    () => probeHost({ mechanism, open, cgroups, sharedFiles: () => veils.describe(), trials: order.trials }),
    (found) => found.available,
  )
  return { name: mechanism.driver, tier: mechanism.tier, probe, open }
}

async function prepare<Facts extends HostFacts, Programs extends CellPrograms>(
  order: CellDriverOrder<Facts, Programs>,
  given: { readonly spec: CellSpec; readonly lease: Lease; readonly programs: Programs },
): Promise<Preparation> {
  try {
    return await order.prepare(given)
  } catch (error) {
    await given.lease.release()
    throw error
  }
}

const always = (): boolean => true

/** Asks once, and again only after a failure or an answer not worth keeping: an obstacle may have been removed meanwhile. */
function remember<T>(ask: () => Promise<T>, isWorthKeeping: (answer: T) => boolean): () => Promise<T> {
  let asked: Promise<T> | undefined
  const forget = (): void => {
    asked = undefined
  }
  return () => {
    if (asked === undefined) {
      asked = ask()
      asked.then((answer) => isWorthKeeping(answer) || forget(), forget)
    }
    return asked
  }
}
