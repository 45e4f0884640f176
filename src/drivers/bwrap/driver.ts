import type { Cell, CellSpec, Driver } from '../../contract/driver.js'
import { type Cgroups, type CgroupsUnavailable, detectCgroups } from '../../sys/cgroups.js'
import { type MountSources, openMountSources } from '../../sys/mount-source.js'
import { nativeProgram } from '../../sys/native.js'
import { type BwrapPrograms, cellArgv } from './arguments.js'
import { type OwnPosture, readOwnPosture } from '../../cell/cell-posture.js'
import { findPrograms } from './cell-programs.js'
import { bwrapMechanism } from './probe.js'
import type { CellPlan } from '../../cell/arguments.js'
import { createCellSpawner, spawnDirectly } from '../../cell/cell-spawner.js'
import { readIdFacts } from '../../cell/facts.js'
import { canMapRanges } from '../../cell/judgement.js'
import { createLessor, type Lessor } from '../../cell/lease.js'
import { checkLiners, checkRootMode, mountFailure } from '../../cell/mount-refusals.js'
import { openCell } from '../../cell/open-cell.js'
import { probeHost } from '../../cell/probe.js'
import type { TrialMemory } from '../../cell/trial-memory.js'
import { createVeilMemory } from '../../cell/veil-memory.js'

export interface BwrapDriverOptions {
  /** What holds memory and processor limits; sought on this machine unless given. */
  readonly cgroups?: Cgroups | CgroupsUnavailable
  /** What cells are built with, instead of what is found. */
  readonly programs?: Partial<BwrapPrograms>
  /** Where it is remembered that cells open here; each driver tries for itself unless given. */
  readonly trials?: TrialMemory
}

/** Nothing is touched before the driver is used. */
export function createBwrapDriver(options: BwrapDriverOptions = {}): Driver {
  const cgroups = remember(() => new Promise<Cgroups | CgroupsUnavailable>((resolve) => resolve(options.cgroups ?? detectCgroups())), always)
  const hasRanges = remember(() => Promise.resolve(canMapRanges(readIdFacts())), always)
  const lessor = remember(async (): Promise<Lessor> => createLessor({ hasRanges: await hasRanges(), cgroups: await cgroups() }), always)
  const own = remember(() => new Promise<OwnPosture>((resolve) => resolve(readOwnPosture())), always)
  const programs = remember(() => new Promise<BwrapPrograms>((resolve) => resolve(findPrograms(options.programs))), always)
  // Whoever names a bwrap wants that one.
  const builds = options.programs?.bwrap === undefined
  const veils = createVeilMemory()
  // Another launcher may know less.
  const spawn = options.programs?.launcher === undefined ? createCellSpawner(() => nativeProgram('launcher')) : spawnDirectly
  const openWith = async (spec: CellSpec, sources: MountSources, signal: AbortSignal): Promise<Cell> => {
    const [posture, found] = await Promise.all([own(), programs()])
    const lease = (await lessor()).lease(spec)
    try {
      const unveilable = veils.unveilable()
      const argv = (plan: CellPlan): [string, ...string[]] => cellArgv({ ...plan, programs: found, builds })
      return await openCell({ spec, lease, signal, spawn, own: posture, unveilable, sources: sources.list, programs: found, argv, runtime: 'bwrap' })
    } catch (error) {
      if (veils.learn(error, spec.root)) return openWith(spec, sources, signal)
      if (!signal.aborted) options.trials?.forget()
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
    () => probeHost({ mechanism: bwrapMechanism, open, cgroups, sharedFiles: () => veils.describe(), trials: options.trials }),
    (found) => found.available,
  )
  return { name: 'bwrap', tier: 'process', probe, open }
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
