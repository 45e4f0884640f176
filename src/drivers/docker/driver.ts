import { readHostFacts, readIdFacts } from '../../cell/facts.js'
import { canMapRanges } from '../../cell/judgement.js'
import { createVeilMemory } from '../../cell/veil-memory.js'
import type { Cell, CellSpec, Driver } from '../../contract/driver.js'
import { type Cgroups, type CgroupsUnavailable, detectCgroups } from '../../sys/cgroups.js'
import { type EngineAddress, engineAddress } from '../../sys/docker/address.js'
import { createEngineClient, type EngineClient } from '../../sys/docker/client.js'
import { dialectOf } from './dialect.js'
import { type EngineGroups, heldByEngine, namesHeld } from './engine-cgroup.js'
import { createFarOpener } from './far.js'
import { type ContainerPrograms, importImage } from './image.js'
import { createRootLessor, createUserLessor, type Standing } from './lease.js'
import { engineTrees } from './mounts.js'
import { createNearOpener } from './near-opener.js'
import { probeDocker } from './probe.js'
import { seesContainers } from './sight.js'
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
  const veils = createVeilMemory()
  const workshop = remember(async () => openWorkshop({ engine: await engine(), cgroups, options, veils }))
  const open = async (spec: CellSpec, signal: AbortSignal): Promise<Cell> => {
    signal.throwIfAborted()
    return (await workshop()).open(spec, signal)
  }
  const standing = async (): Promise<Standing> => (await workshop()).standing
  const ask = (): ReturnType<Driver['probe']> => probeDocker({ open, engine, cgroups, sharedFiles: () => veils.describe(), runtime: options.runtime, standing })
  return { name: 'docker', tier: 'container', standby: true, probe: remember(ask, ({ available }) => available), open }
}

/** What every cell needs and none changes. */
interface Workshop {
  readonly standing: Standing
  readonly open: (spec: CellSpec, signal: AbortSignal) => Promise<Cell>
}

interface WorkshopParts {
  readonly engine: EngineClient
  readonly cgroups: () => Promise<Cgroups | CgroupsUnavailable>
  readonly options: DockerDriverOptions
  readonly veils: ReturnType<typeof createVeilMemory>
}

/** Clears away what dead owners left, makes sure of the image, and finds out how we stand to the engine. */
async function openWorkshop({ engine, cgroups, options: { programs, runtime }, veils }: WorkshopParts): Promise<Workshop> {
  const info = (await engine.call('GET', '/info')) as EngineGroups & { readonly DockerRootDir?: string }
  await sweepContainers(engine)
  const [image, dialect] = await Promise.all([importImage(engine, programs), dialectOf(engine)])
  const standing = await standingTo({ engine, image, dialect, runtime })
  const holds = namesHeld(heldByEngine(info))
  const common = { engine, dialect, runtime, openFiles: readHostFacts().openFiles }
  if (standing === 'far') return { standing, open: createFarOpener({ ...common, programs, holds }) }
  const lessor = standing === 'root' ? await createRootLessor(await cgroups()) : createUserLessor(holds)
  return { standing, open: createNearOpener({ ...common, image, standing, lessor, veils, trees: engineTrees(engine, info.DockerRootDir) }) }
}

/** A root without its rights is nobody here that a container could be run as. */
async function standingTo(order: Omit<Parameters<typeof seesContainers>[0], 'standing'>): Promise<Standing> {
  const standing = canMapRanges(readIdFacts()) ? 'root' : 'user'
  if (standing === 'user' && process.getuid?.() === 0) return 'far'
  return (await seesContainers({ ...order, standing })) ? standing : 'far'
}

/** Asks once, and again only after a failure or an answer not worth keeping: an obstacle may have been removed meanwhile. */
export function remember<T>(ask: () => T | Promise<T>, isWorthKeeping: (answer: T) => boolean = () => true): () => Promise<T> {
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
