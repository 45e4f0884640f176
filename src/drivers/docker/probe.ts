import { type FailedTrial, lastLine, missingPrograms } from '../../cell/judgement.js'
import { readHostFacts, type HostFacts } from '../../cell/facts.js'
import { type Mechanism, probeHost } from '../../cell/probe.js'
import type { Cell, CellSpec, Obstacle, Probe } from '../../contract/driver.js'
import type { Cgroups, CgroupsUnavailable } from '../../sys/cgroups.js'
import { describeAddress } from '../../sys/docker/address.js'
import type { EngineClient } from '../../sys/docker/client.js'
import { heldByEngine, onlyOneGroup } from './engine-cgroup.js'
import { introduce, isGvisor, noEngine } from './introduction.js'
import { farWords } from './far.js'
import type { Standing } from './lease.js'
import { wordsOf } from './words.js'

export interface DockerProbeOptions {
  readonly open: (spec: CellSpec, signal: AbortSignal) => Promise<Cell>
  readonly engine: () => Promise<EngineClient>
  readonly cgroups: () => Promise<Cgroups | CgroupsUnavailable>
  readonly sharedFiles: () => string
  readonly runtime: string | undefined
  readonly standing: () => Promise<Standing>
}

interface DockerFacts extends HostFacts {
  readonly engine: EngineFacts | Obstacle
}

interface EngineFacts {
  readonly address: string
  readonly version: string
  readonly runtimes: readonly string[]
  readonly runtime: string
  readonly holds: ReturnType<typeof heldByEngine>
  readonly standing: Standing
  /** Of its machine. */
  readonly memoryBytes: number | undefined
  readonly kernel: HostFacts['kernel']
}

/** Never throws: what goes wrong is an obstacle. */
export async function probeDocker(options: DockerProbeOptions): Promise<Probe> {
  let engine: DockerFacts['engine'] | undefined
  const mechanism: Mechanism<DockerFacts> = {
    driver: 'docker',
    tier: 'container',
    runtime: 'docker',
    wordsOf,
    readFacts: async () => factsOf((engine = await askEngine(options))),
    runtimeOf: ({ engine: found }) => ('address' in found ? { path: found.address, version: found.version } : undefined),
    obstaclesBefore,
    obstacleOf,
  }
  const standing = (): Standing => (engine && 'standing' in engine ? engine.standing : 'root')
  const held = (): CgroupsUnavailable => ({ unavailable: onlyOneGroup, ...(engine && 'holds' in engine && { enforces: engine.holds }) })
  const found = await probeHost({
    mechanism,
    // An engine elsewhere has nothing of this machine, and a trial needs nothing of it.
    open: (spec, signal) => options.open(standing() === 'far' ? { ...spec, root: { ...spec.root, binds: [] } } : spec, signal),
    cgroups: () => (standing() === 'root' ? options.cgroups() : Promise.resolve(held())),
    sharedFiles: options.sharedFiles,
    trials: undefined,
  })
  const noMounts = { available: false, why: farWords } as const
  return {
    ...found,
    users: { user: { available: true }, root: { available: false, why: 'the container has a single id, without any capability' } },
    features: {
      ...found.features,
      ...(standing() === 'far' && { 'mounts-ro': noMounts, 'mounts-rw': noMounts, 'mounts-overlay': noMounts }),
      'root-overlay': { available: false, why: 'the root of the container is read-only' },
    },
    facts: { ...found.facts, ids: idWords[standing()], ...engineWords(engine) },
  }
}

/** What is judged about this machine is judged about the engine's, where that is another. */
function factsOf(engine: DockerFacts['engine']): DockerFacts {
  const facts = { ...readHostFacts(), engine }
  if (!('standing' in engine) || engine.standing !== 'far') return facts
  return { ...facts, uid: lastId, memoryBytes: engine.memoryBytes ?? facts.memoryBytes, kernel: engine.kernel }
}

/** Whatever this process is there, it is not root. */
const lastId = 0x7fffffff

const idWords: Readonly<Record<Standing, string>> = {
  root: 'one for each cell, from 0x78000000 up',
  user: 'that of whoever calls, without further groups',
  far: 'one for each cell, by chance, from 0x78000000 up, on the engine’s machine',
}

function engineWords(engine: DockerFacts['engine'] | undefined): Record<string, string> {
  if (!engine || !('address' in engine)) return {}
  const seen = engine.standing === 'far' ? { 'looked at': 'by our launcher in each container: receipts say “told” instead of “proven”' } : {}
  return { runtime: engine.runtime, runtimes: engine.runtimes.join(', '), ...seen }
}

const gvisor: Obstacle = {
  what: 'the runtime is gVisor',
  why: 'a cell of this driver is built within its container, of namespaces and mounts that gVisor does not have',
  hint: 'glovebox run --driver docker:runsc -- true',
}

async function askEngine({ engine, runtime, standing }: DockerProbeOptions): Promise<DockerFacts['engine']> {
  try {
    const client = await engine()
    const found = await introduce(client)
    if ('what' in found) return found
    const { version, info } = found
    const [major = 0, minor = 0] = (info.KernelVersion ?? '').split('.').map((part) => Number.parseInt(part, 10) || 0)
    const runtimes = Object.keys(info.Runtimes ?? {}).sort()
    if (runtime !== undefined && !runtimes.includes(runtime)) {
      return { what: `no runtime ${runtime}`, why: `the engine knows ${runtimes.join(', ')}`, hint: 'docker info' }
    }
    if (isGvisor(runtime ?? info.DefaultRuntime ?? '')) return gvisor
    return {
      ...{ address: describeAddress(client.address), version, runtimes, runtime: runtime ?? info.DefaultRuntime ?? 'unknown' },
      ...{ holds: heldByEngine(info), standing: await standing(), memoryBytes: info.MemTotal },
      kernel: [major, minor],
    }
  } catch (error) {
    return noEngine(error)
  }
}

function obstaclesBefore(facts: DockerFacts): Obstacle[] {
  if (facts.platform !== 'linux') {
    return [
      { what: 'not Linux', why: `what is in a container of ours is built for Linux and this is ${facts.platform}`, hint: 'export GLOVEBOX_URL=https://…' },
    ]
  }
  return [...('what' in facts.engine ? [facts.engine] : []), ...missingPrograms(facts)]
}

function obstacleOf(_facts: DockerFacts, { said, hint }: FailedTrial): Obstacle {
  return { what: 'a trial cell did not open', why: lastLine(said) || 'it ended without a word', hint: hint ?? 'docker run --rm --network none hello-world' }
}
