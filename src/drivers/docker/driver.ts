import { hostDevices } from '../../cell/arguments.js'
import { type OwnPosture, readOwnPosture } from '../../cell/cell-posture.js'
import type { CellSpawner } from '../../cell/cell-spawner.js'
import { type HostFiles, readHostFiles } from '../../cell/expected-mounts.js'
import { readHostFacts } from '../../cell/facts.js'
import { checkLiners, checkRootMode } from '../../cell/mount-refusals.js'
import { openCell } from '../../cell/open-cell.js'
import { createVeilMemory } from '../../cell/veil-memory.js'
import type { Cell, CellSpec, Driver } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import { type Cgroups, type CgroupsUnavailable, detectCgroups } from '../../sys/cgroups.js'
import { type EngineAddress, engineAddress } from '../../sys/docker/address.js'
import { createEngineClient, type EngineClient } from '../../sys/docker/client.js'
import { containerArgv } from './arguments.js'
import { type ContainerPrograms, importImage } from './image.js'
import { type ContainerLease, type ContainerLessor, createContainerLessor } from './lease.js'
import { noMounts, probeDocker, wordsOf } from './probe.js'
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
  const engine = remember(() => createEngineClient(options.address ?? engineAddress()))
  const cgroups = remember(() => options.cgroups ?? detectCgroups())
  const workshop = remember(async () => openWorkshop({ engine: await engine(), cgroups: await cgroups(), options }))
  const veils = createVeilMemory()
  const openWith = async (spec: CellSpec, signal: AbortSignal): Promise<Cell> => {
    const { lessor, own, dialect, spawnFor } = await workshop()
    const lease = lessor.lease(spec)
    const spawn = spawnFor({ spec, lease, signal })
    const argv = containerArgv
    const programs = { launcher: '', warden: '' }
    const host = withContainerDevices(readHostFiles(), dialect)
    try {
      return await openCell({ spec, lease, signal, spawn, own, unveilable: veils.unveilable(), sources: [], programs, argv, wordsOf, host })
    } catch (error) {
      if (veils.learn(error, spec.root)) return openWith(spec, signal)
      throw error
    }
  }
  const open = async (spec: CellSpec, signal: AbortSignal): Promise<Cell> => {
    signal.throwIfAborted()
    checkRootMode(spec, 'single')
    checkLiners(spec)
    if (spec.mounts.length > 0) throw new SandboxError('unsupported', `mounts are not available: ${noMounts}`, { hint: 'glovebox doctor' })
    return openWith(spec, signal)
  }
  const ask = (): ReturnType<Driver['probe']> => probeDocker({ open, engine, cgroups, sharedFiles: () => veils.describe(), runtime: options.runtime })
  return { name: 'docker', tier: 'container', standby: true, probe: remember(ask, ({ available }) => available), open }
}

interface Order {
  readonly spec: CellSpec
  readonly lease: ContainerLease
  readonly signal: AbortSignal
}

/** What every cell needs and none changes. */
interface Workshop {
  readonly lessor: ContainerLessor
  readonly own: OwnPosture
  readonly dialect: Dialect
  readonly spawnFor: (order: Order) => CellSpawner
}

interface WorkshopParts {
  readonly engine: EngineClient
  readonly cgroups: Cgroups | CgroupsUnavailable
  readonly options: DockerDriverOptions
}

/** Clears away what dead owners left, and makes sure of the image. */
async function openWorkshop({ engine, cgroups, options: { programs, runtime } }: WorkshopParts): Promise<Workshop> {
  await sweepContainers(engine)
  const [image, lessor, dialect] = await Promise.all([importImage(engine, programs), createContainerLessor(cgroups), dialectOf(engine)])
  const own = withContainerFilter(readOwnPosture())
  const { openFiles } = readHostFacts()
  return {
    lessor,
    own,
    dialect,
    spawnFor:
      ({ spec, lease, signal }) =>
      async ({ argv }) => {
        // The doors to the groups are bound into the container, so they come first.
        await lease.buildGroups()
        const { hostId, cgroup: groups } = lease
        return spawnContainer({ engine, signal, spec, cgroups: groups, argv: argv(process.pid), image, hostId, dialect, openFiles, runtime })
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
