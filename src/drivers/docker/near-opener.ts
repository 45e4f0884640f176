import { hostDevices } from '../../cell/arguments.js'
import { type OwnPosture, readOwnPosture } from '../../cell/cell-posture.js'
import { type HostFiles, readHostFiles } from '../../cell/expected-mounts.js'
import { checkLiners, checkRootMode, mountFailure } from '../../cell/mount-refusals.js'
import { openCell } from '../../cell/open-cell.js'
import { placedMounts } from '../../cell/placed-mounts.js'
import type { VeilMemory } from '../../cell/veil-memory.js'
import type { Cell, CellSpec } from '../../contract/driver.js'
import type { EngineClient } from '../../sys/docker/client.js'
import { type MountSources, openMountSources } from '../../sys/mount-source.js'
import type { ForbiddenTree } from '../../sys/mount-source-rules.js'
import { containerArgv, groupDoors } from './arguments.js'
import { containerConfig } from './container.js'
import type { Dialect } from './dialect.js'
import type { ContainerLease, ContainerLessor, Standing } from './lease.js'
import { settleNear } from './near.js'
import { spawnContainer } from './spawner.js'
import { wordsOf } from './words.js'

export interface NearParts {
  readonly engine: EngineClient
  readonly image: string
  readonly dialect: Dialect
  readonly openFiles: number
  readonly runtime: string | undefined
  readonly standing: Exclude<Standing, 'far'>
  readonly lessor: ContainerLessor
  readonly veils: VeilMemory
  /** Of the engine's own, which no cell may have. */
  readonly trees: readonly ForbiddenTree[]
}

/** As root the engine need not know what is mounted; an ordinary user has nobody else to ask. */
const arrivals = { root: 'put', user: 'engine' } as const
const sourceIds = { root: 'range', user: 'single' } as const
/** They are in the image. */
const programs = { launcher: '', warden: '' }

export function createNearOpener(parts: NearParts): (spec: CellSpec, signal: AbortSignal) => Promise<Cell> {
  const { standing, lessor, veils, dialect, trees } = parts
  const own = withContainerFilter(readOwnPosture())
  const openWith = async (spec: CellSpec, sources: MountSources, signal: AbortSignal): Promise<Cell> => {
    const lease = lessor.lease(spec)
    const spawn = spawnNear({ ...parts, spec, lease, sources, signal })
    const told = { argv: containerArgv, arrival: arrivals[standing], programs, wordsOf }
    const host = withContainerDevices(readHostFiles(), dialect)
    try {
      return await openCell({ spec, lease, signal, spawn, own, unveilable: veils.unveilable(), sources: sources.list, host, ...told })
    } catch (error) {
      if (veils.learn(error, spec.root)) return openWith(spec, sources, signal)
      throw mountFailure(error, spec.mounts)
    }
  }
  return async (spec, signal) => {
    checkRootMode(spec, 'single')
    checkLiners(spec)
    const sources = openMountSources(spec.mounts, sourceIds[standing], trees)
    try {
      return await openWith(spec, sources, signal)
    } finally {
      sources.close()
    }
  }
}

interface NearSpawn extends NearParts {
  readonly spec: CellSpec
  readonly lease: ContainerLease
  readonly sources: MountSources
  readonly signal: AbortSignal
}

function spawnNear({ spec, lease, sources, standing, ...order }: NearSpawn): Parameters<typeof openCell>[0]['spawn'] {
  return async ({ argv }) => {
    // The doors to the groups are bound into the container, so they come first.
    await lease.buildGroups()
    const mounts = placedMounts({ spec, ids: lease.ids, programs, ownerPid: process.pid, sources: sources.list })
    return spawnContainer({
      ...{ engine: order.engine, id: spec.id, signal: order.signal, goesOn: lease.cgroup === undefined, remains: lease.remains },
      config: containerConfig({
        ...{ ...order, spec, ids: lease.hostIds, argv: argv(process.pid) },
        groups: lease.engineCgroup ? 'engine' : { doors: lease.cgroup ? groupDoors(lease.cgroup) : [] },
        bound: arrivals[standing] === 'engine' ? mounts : [],
      }),
      settle: ({ pid }) => settleNear({ spec, lease, mounts }, pid),
    })
  }
}

/** The container's own filter comes before any of ours. */
function withContainerFilter(own: OwnPosture): OwnPosture {
  return { ...own, filters: own.filters + 1 }
}

/** The devices of a cell are those of the container, which the engine makes in a tmpfs. */
function withContainerDevices(host: HostFiles, { devices }: Dialect): HostFiles {
  return { ...host, mountsAt: (path) => (hostDevices.includes(path) ? [['', devices]] : host.mountsAt(path)) }
}
