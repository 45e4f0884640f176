import { hostDevices } from '../../cell/arguments.js'
import { type OwnPosture, readOwnPosture } from '../../cell/cell-posture.js'
import type { CellSpawner } from '../../cell/cell-spawner.js'
import { type HostFiles, readHostFiles } from '../../cell/expected-mounts.js'
import { readHostFacts, readIdFacts } from '../../cell/facts.js'
import { canMapRanges } from '../../cell/judgement.js'
import { checkLiners, checkRootMode, mountFailure } from '../../cell/mount-refusals.js'
import { openCell } from '../../cell/open-cell.js'
import { placedMounts } from '../../cell/placed-mounts.js'
import { createVeilMemory } from '../../cell/veil-memory.js'
import type { Cell, CellSpec, Driver } from '../../contract/driver.js'
import { type Cgroups, type CgroupsUnavailable, detectCgroups } from '../../sys/cgroups.js'
import { type EngineAddress, engineAddress } from '../../sys/docker/address.js'
import { createEngineClient, type EngineClient } from '../../sys/docker/client.js'
import { type MountSources, openMountSources } from '../../sys/mount-source.js'
import type { ForbiddenTree } from '../../sys/mount-source-rules.js'
import { containerArgv, groupDoors } from './arguments.js'
import { type EngineGroups, heldByEngine, namesHeld } from './engine-cgroup.js'
import { type ContainerPrograms, importImage } from './image.js'
import { type ContainerLease, type ContainerLessor, createRootLessor, createUserLessor, type Standing } from './lease.js'
import { engineTrees } from './mounts.js'
import { settleNear } from './near.js'
import { probeDocker, wordsOf } from './probe.js'
import { type Dialect, dialectOf } from './dialect.js'
import { spawnContainer } from './spawner.js'
import { sweepContainers } from './sweep.js'

export interface DockerDriverOptions {
  /** Where the engine listens; told by the environment unless given. */
  readonly address?: EngineAddress
  /** What holds memory and processor limits; sought on this machine unless given. */
  readonly cgroups?: Cgroups | CgroupsUnavailable
  /** What cells are built with, instead of what is found. */
  readonly programs?: Partial<ContainerPrograms>
  /** One of the engine's runtimes; its own choice unless given. */
  readonly runtime?: string
}

/** Nothing is touched before the driver is used. */
export function createDockerDriver(options: DockerDriverOptions = {}): Driver {
  const standing: Standing = canMapRanges(readIdFacts()) ? 'root' : 'user'
  const engine = remember(() => createEngineClient(options.address ?? engineAddress()))
  const cgroups = remember(() => options.cgroups ?? detectCgroups())
  const workshop = remember(async () => openWorkshop({ engine: await engine(), cgroups: await cgroups(), options, standing }))
  const veils = createVeilMemory()
  const openWith = async (spec: CellSpec, sources: MountSources, signal: AbortSignal): Promise<Cell> => {
    const { lessor, own, dialect, spawnFor } = await workshop()
    const lease = lessor.lease(spec)
    const spawn = spawnFor({ spec, lease, sources, signal })
    const told = { argv: containerArgv, arrival: arrivals[standing], programs: { launcher: '', warden: '' }, wordsOf }
    const host = withContainerDevices(readHostFiles(), dialect)
    try {
      return await openCell({ spec, lease, signal, spawn, own, unveilable: veils.unveilable(), sources: sources.list, host, ...told })
    } catch (error) {
      if (veils.learn(error, spec.root)) return openWith(spec, sources, signal)
      throw mountFailure(error, spec.mounts)
    }
  }
  const open = async (spec: CellSpec, signal: AbortSignal): Promise<Cell> => {
    signal.throwIfAborted()
    checkRootMode(spec, 'single')
    checkLiners(spec)
    const sources = openMountSources(spec.mounts, standing === 'root' ? 'range' : 'single', spec.mounts.length === 0 ? [] : (await workshop()).trees)
    try {
      return await openWith(spec, sources, signal)
    } finally {
      sources.close()
    }
  }
  const ask = (): ReturnType<Driver['probe']> => probeDocker({ open, engine, cgroups, sharedFiles: () => veils.describe(), runtime: options.runtime, standing })
  return { name: 'docker', tier: 'container', standby: true, probe: remember(ask, ({ available }) => available), open }
}

/** As root the engine need not know what is mounted; an ordinary user has nobody else to ask. */
const arrivals = { root: 'put', user: 'engine' } as const

interface Order {
  readonly spec: CellSpec
  readonly lease: ContainerLease
  readonly sources: MountSources
  readonly signal: AbortSignal
}

/** What every cell needs and none changes. */
interface Workshop {
  readonly lessor: ContainerLessor
  readonly own: OwnPosture
  readonly dialect: Dialect
  /** Of the engine's own, which no cell may have. */
  readonly trees: readonly ForbiddenTree[]
  readonly spawnFor: (order: Order) => CellSpawner
}

interface WorkshopParts {
  readonly engine: EngineClient
  readonly cgroups: Cgroups | CgroupsUnavailable
  readonly options: DockerDriverOptions
  readonly standing: Standing
}

/** Clears away what dead owners left, and makes sure of the image. */
async function openWorkshop({ engine, cgroups, options: { programs, runtime }, standing }: WorkshopParts): Promise<Workshop> {
  const info = (await engine.call('GET', '/info')) as EngineGroups & { readonly DockerRootDir?: string }
  await sweepContainers(engine)
  const [image, lessor, dialect] = await Promise.all([
    importImage(engine, programs),
    standing === 'root' ? createRootLessor(cgroups) : createUserLessor(namesHeld(heldByEngine(info))),
    dialectOf(engine),
  ])
  const { openFiles } = readHostFacts()
  const common = { engine, image, dialect, openFiles, runtime }
  return {
    lessor,
    own: withContainerFilter(readOwnPosture()),
    dialect,
    trees: engineTrees(engine, info.DockerRootDir),
    spawnFor:
      ({ spec, lease, sources, signal }) =>
      async ({ argv }) => {
        // The doors to the groups are bound into the container, so they come first.
        await lease.buildGroups()
        const mounts = placedMounts({ spec, ids: lease.ids, programs: { launcher: '', warden: '' }, ownerPid: process.pid, sources: sources.list })
        return spawnContainer({
          ...common,
          ...{ spec, signal, ids: lease.hostIds, argv: argv(process.pid), goesOn: lease.cgroup === undefined, remains: lease.remains },
          groups: lease.engineCgroup ? 'engine' : { doors: lease.cgroup ? groupDoors(lease.cgroup) : [] },
          bound: arrivals[lease.standing] === 'engine' ? mounts : [],
          settle: ({ pid }) => settleNear({ spec, lease, mounts }, pid),
        })
      },
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

/** Asks once, and again only after a failure or an answer not worth keeping: an obstacle may have been removed meanwhile. */
function remember<T>(ask: () => T | Promise<T>, isWorthKeeping: (answer: T) => boolean = () => true): () => Promise<T> {
  let asked: Promise<T> | undefined
  const forget = (): void => {
    asked = undefined
  }
  return () => {
    if (asked === undefined) {
      asked = new Promise<T>((resolve) => resolve(ask()))
      asked.then((answer) => isWorthKeeping(answer) || forget(), forget)
    }
    return asked
  }
}
