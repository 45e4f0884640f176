import type { CellPlan } from '../../cell/arguments.js'
import { type OwnPosture, readOwnPosture } from '../../cell/cell-posture.js'
import { hostDevices } from '../../cell/arguments.js'
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
import type { SpawnedProcess } from '../../sys/spawn.js'
import { type CellPrograms, importImage } from './image.js'
import { createContainerLessor, type ContainerLessor } from './lease.js'
import { probeDocker } from './probe.js'
import { containerProfile } from './seccomp.js'
import { spawnContainer } from './spawner.js'
import { sweepContainers } from './sweep.js'

export interface DockerDriverOptions {
  /** Where the engine listens; told by the environment unless given. */
  readonly address?: EngineAddress
  /** What holds memory and processor limits; sought on this machine unless given. */
  readonly cgroups?: Cgroups | CgroupsUnavailable
  /** What cells are built with, instead of what is found. */
  readonly programs?: Partial<CellPrograms>
  /** One of the engine's runtimes; its own choice unless given. */
  readonly runtime?: string
}

export const noMounts = 'the engine binds folders by their paths and cannot say whose they are in the cell'

/** Nothing is touched before the driver is used. */
export function createDockerDriver(options: DockerDriverOptions = {}): Driver {
  const engine = remember(async (): Promise<EngineClient> => createEngineClient(options.address ?? engineAddress()))
  const cgroups = remember(async (): Promise<Cgroups | CgroupsUnavailable> => options.cgroups ?? detectCgroups())
  const own = remember(async (): Promise<OwnPosture> => withContainerFilter(readOwnPosture()))
  const profile = remember(async () => containerProfile())
  const image = remember(async () => importImage(await engine(), options.programs))
  const lessor = remember(async (): Promise<ContainerLessor> => {
    await sweepContainers(await engine())
    return createContainerLessor(await cgroups())
  })
  const veils = createVeilMemory()
  const openFiles = remember(async () => readHostFacts().openFiles)
  const openWith = async (spec: CellSpec, signal: AbortSignal): Promise<Cell> => {
    const [client, posture, imageName, filter, files] = await Promise.all([engine(), own(), image(), profile(), openFiles()])
    const lease = (await lessor()).lease(spec)
    const spawn = async (plan: CellPlan): Promise<SpawnedProcess> => {
      await lease.buildGroups()
      const { hostId } = lease
      return spawnContainer({ engine: client, signal, plan, image: imageName, hostId, profile: filter, openFiles: files, runtime: options.runtime })
    }
    try {
      // What the container is told is in its configuration; the plan is what that is made of.
      let planned: CellPlan | undefined
      const argv = (plan: CellPlan): [string] => {
        planned = plan
        return ['']
      }
      return await openCell({
        spec,
        lease,
        signal,
        spawn: (order) => {
          order.argv(process.pid)
          return spawn(planned as CellPlan)
        },
        own: posture,
        unveilable: veils.unveilable(),
        sources: [],
        programs: { launcher: '', warden: '' },
        argv,
        runtime: 'docker',
        host: withContainerDevices(readHostFiles()),
      })
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
  const probe = remember(
    () => probeDocker({ open, engine, cgroups, sharedFiles: () => veils.describe(), runtime: options.runtime }),
    (found) => found.available,
  )
  return { name: 'docker', tier: 'container', standby: true, probe, open }
}

/** The container's own filter comes before any of ours. */
function withContainerFilter(own: OwnPosture): OwnPosture {
  return { ...own, filters: own.filters + 1 }
}

/** The devices of a cell are those of the container, which the engine makes in a tmpfs. */
function withContainerDevices(host: HostFiles): HostFiles {
  const device = { type: 'tmpfs', access: 'rw', nosuid: true, nodev: false, noexec: false } as const
  return { ...host, mountsAt: (path) => (hostDevices.includes(path) ? [['', device]] : host.mountsAt(path)) }
}

/** Asks once, and again only after a failure or an answer not worth keeping: an obstacle may have been removed meanwhile. */
function remember<T>(ask: () => Promise<T>, isWorthKeeping: (answer: T) => boolean = () => true): () => Promise<T> {
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
