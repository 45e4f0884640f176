import { findProgram, type HostFacts, programPath, readHostFacts } from '../../cell/facts.js'
import { lacks, limitsOfSandbox, terminalsOfSandbox } from '../../cell/gvisor/abilities.js'
import { canMapRanges, type FailedTrial, lastLine, missingPrograms } from '../../cell/judgement.js'
import { type Mechanism, probeHost } from '../../cell/probe.js'
import type { Cell, CellSpec, Obstacle, Probe } from '../../contract/driver.js'
import type { Cgroups, CgroupsUnavailable } from '../../sys/cgroups.js'
import { describeAddress } from '../../sys/docker/address.js'
import type { EngineClient } from '../../sys/docker/client.js'
import { type EngineInfo, introduce, isGvisor, noEngine } from './introduction.js'
import { wordsOf } from './words.js'

export interface SandboxProbeOptions {
  readonly open: (spec: CellSpec, signal: AbortSignal) => Promise<Cell>
  readonly engine: () => Promise<EngineClient>
  readonly cgroups: () => Promise<Cgroups | CgroupsUnavailable>
  readonly runtime: string | undefined
}

interface SandboxFacts extends HostFacts {
  readonly engine: Found | Obstacle
}

interface Found {
  readonly address: string
  readonly version: string
  readonly runtime: string
  /** Of gVisor; empty where it cannot be asked for. */
  readonly gvisor: string
}

/** Without a network of its own nothing of gVisor's has to be carried over, and files are opened by the gofer alone. */
const install = 'sudo runsc install -- --network=none && sudo systemctl restart docker'
const unmapped = 'the container engine maps ids of its own (userns-remap), and the folders of a template would belong to nobody'

/** Never throws: what goes wrong is an obstacle. */
export async function probeSandboxes(options: SandboxProbeOptions): Promise<Probe> {
  let version = ''
  const mechanism: Mechanism<SandboxFacts> = {
    driver: 'docker:runsc',
    tier: 'gvisor',
    ownKernel: true,
    runtime: 'docker',
    wordsOf,
    lacks,
    readFacts: async () => {
      const engine = await askEngine(options)
      version = 'gvisor' in engine ? engine.gvisor : ''
      return { ...readHostFacts(), engine }
    },
    runtimeOf: ({ engine }) => ('address' in engine ? { path: engine.address, version: engine.version } : undefined),
    obstaclesBefore,
    obstacleOf,
    limits: (limits, cgroups) => limitsOfSandbox(limits, cgroups, version),
    others: { ids: 'those of gVisor’s kernel; on the host its kernel has nobody’s, and who opens files for it root’s', terminals: terminalsOfSandbox },
  }
  const found = await probeHost({ mechanism, open: options.open, cgroups: options.cgroups, sharedFiles: () => '', trials: undefined })
  return {
    ...found,
    users: { ...found.users, root: { available: false, why: 'what root wrote to gVisor’s own /dev would not count as disk' } },
    facts: { ...found.facts, gvisor: version || 'of an unknown version' },
  }
}

/** The one that is asked for, or the first of gVisor's. */
export function chooseRuntime({ Runtimes }: EngineInfo, wanted: string | undefined): string | Obstacle {
  const known = Object.keys(Runtimes ?? {}).sort()
  const found = wanted === undefined ? known.find(isGvisor) : known.find((name) => name === wanted)
  if (found !== undefined) return found
  return { what: 'no runsc', why: `the container engine has no runtime of gVisor (it has ${known.join(', ') || 'none'})`, hint: install }
}

async function askEngine({ engine, runtime: wanted }: SandboxProbeOptions): Promise<Found | Obstacle> {
  try {
    const client = await engine()
    const found = await introduce(client)
    if ('what' in found) return found
    const { version, info } = found
    const runtime = chooseRuntime(info, wanted)
    if (typeof runtime !== 'string') return runtime
    if (info.SecurityOptions?.some((option) => option.includes('name=userns')) === true)
      return { what: 'ids of the engine', why: unmapped, hint: 'glovebox run --driver oci:runsc -- true' }
    return { address: describeAddress(client.address), version, runtime, gvisor: await versionOf(info.Runtimes?.[runtime]?.path) }
  } catch (error) {
    return noEngine(error)
  }
}

/** The program is the engine's, of whose machine this may not be: where it cannot be asked, nothing is taken for granted that only some versions hold. */
async function versionOf(path = ''): Promise<string> {
  return (await findProgram(path.startsWith('/') ? path : programPath(path), undefined))?.version ?? ''
}

function obstaclesBefore(facts: SandboxFacts): Obstacle[] {
  const { platform, engine } = facts
  if (platform !== 'linux')
    return [{ what: 'not Linux', why: `what is in a container of ours is built for Linux and this is ${platform}`, hint: 'export GLOVEBOX_URL=https://…' }]
  const rootless: Obstacle = {
    what: 'not root',
    why: 'what gVisor shows of this machine is sealed, and looked at, by root alone',
    hint: 'sudo glovebox run --driver docker:runsc -- true',
  }
  return [...('what' in engine ? [engine] : []), ...(canMapRanges(facts) ? [] : [rootless]), ...missingPrograms(facts)]
}

function obstacleOf(_facts: SandboxFacts, { said, hint }: FailedTrial): Obstacle {
  const why = lastLine(said) || 'it ended without a word'
  // What old versions take for the host's own network is any, where the kernel is newer than they.
  const isNetwork = /network enabled|setting up network/.test(why)
  return { what: 'a trial cell did not open', why, hint: hint ?? (isNetwork ? install : 'docker run --rm --runtime runsc --network none hello-world') }
}
