/** Sandboxes of gVisor that a container engine starts: each of its containers is a cell by itself. */
import { readHostFiles } from '../../cell/expected-mounts.js'
import { readHostFacts } from '../../cell/facts.js'
import type { Cell, CellSpec, Driver } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import { type Cgroups, type CgroupsUnavailable, detectCgroups } from '../../sys/cgroups.js'
import { type EngineAddress, engineAddress } from '../../sys/docker/address.js'
import { createEngineClient, type EngineClient } from '../../sys/docker/client.js'
import { remember } from './driver.js'
import { type ContainerPrograms, createSandboxImages } from './image.js'
import { type EngineInfo, introduce } from './introduction.js'
import { engineTrees } from './mounts.js'
import { createSandboxLessor } from './sandbox-lease.js'
import { createSandboxOpener, type SandboxParts } from './sandbox-opener.js'
import { chooseRuntime, probeSandboxes } from './sandbox-probe.js'
import { sweepContainers, sweepDisks } from './sweep.js'

export interface DockerSandboxOptions {
  /** Where the engine listens; told by the environment unless given. */
  readonly address?: EngineAddress
  /** What holds memory and processor limits; sought on this machine unless given. */
  readonly cgroups?: Cgroups | CgroupsUnavailable
  /** What cells are built with, instead of what is found. */
  readonly programs?: Partial<ContainerPrograms>
  /** One of the engine's runtimes; the first that has a name of gVisor's unless given. */
  readonly runtime?: string
}

/** Nothing is touched before the driver is used. */
export function createDockerSandboxDriver(options: DockerSandboxOptions = {}): Driver {
  const engine = remember(() => createEngineClient(options.address ?? engineAddress()))
  const cgroups = remember(() => options.cgroups ?? detectCgroups())
  const opener = remember(async () => createOpener({ engine: await engine(), cgroups: await cgroups(), options }))
  const open = async (spec: CellSpec, signal: AbortSignal): Promise<Cell> => {
    signal.throwIfAborted()
    return (await opener())(spec, signal)
  }
  const probe = remember(
    () => probeSandboxes({ open, engine, cgroups, runtime: options.runtime }),
    ({ available }) => available,
  )
  return { name: 'docker:runsc', tier: 'gvisor', standby: true, probe, open }
}

interface OpenerParts {
  readonly engine: EngineClient
  readonly cgroups: Cgroups | CgroupsUnavailable
  readonly options: DockerSandboxOptions
}

async function createOpener({ engine, cgroups, options }: OpenerParts): Promise<ReturnType<typeof createSandboxOpener>> {
  const found = await introduce(engine)
  if ('what' in found) throw new SandboxError('unavailable', `${found.what}: ${found.why}`, { hint: found.hint })
  const { info } = found
  const runtime = chooseRuntime(info, options.runtime)
  if (typeof runtime !== 'string') throw new SandboxError('unavailable', `${runtime.what}: ${runtime.why}`, { hint: runtime.hint })
  await sweepContainers(engine)
  await sweepDisks(engine)
  return createSandboxOpener({
    ...{ engine, runtime, openFiles: readHostFacts().openFiles },
    image: createSandboxImages(engine, options.programs),
    lessor: await createSandboxLessor(cgroups),
    trees: engineTrees(engine, info.DockerRootDir),
    ofEngine: mountsOf(info),
  })
}

/** Of the file systems on which an engine keeps the roots of containers, and their names. */
function mountsOf({ Driver: storage = '', DockerRootDir = '/' }: EngineInfo): SandboxParts['ofEngine'] {
  const [own] = readHostFiles().mountsAt(DockerRootDir)
  const type = storage.startsWith('overlay') ? 'overlay' : (own?.[1].type ?? 'unknown')
  return { root: { type, access: 'ro', nosuid: true, nodev: true, noexec: false }, files: DockerRootDir }
}
