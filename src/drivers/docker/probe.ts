import { type FailedTrial, lastLine, missingPrograms } from '../../cell/judgement.js'
import { readHostFacts, type HostFacts } from '../../cell/facts.js'
import { type Mechanism, probeHost } from '../../cell/probe.js'
import type { Cell, CellSpec, Obstacle, Probe } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import type { Cgroups, CgroupsUnavailable } from '../../sys/cgroups.js'
import { describeAddress } from '../../sys/docker/address.js'
import type { EngineClient } from '../../sys/docker/client.js'
import { type EngineGroups, heldByEngine, onlyOneGroup } from './engine-cgroup.js'
import type { Standing } from './lease.js'

/** Whatever the engine says of its own begins so. */
export function wordsOf(line: string): string | undefined {
  return line.startsWith('docker:') ? line : undefined
}

export interface DockerProbeOptions {
  readonly open: (spec: CellSpec, signal: AbortSignal) => Promise<Cell>
  readonly engine: () => Promise<EngineClient>
  readonly cgroups: () => Promise<Cgroups | CgroupsUnavailable>
  readonly sharedFiles: () => string
  readonly runtime: string | undefined
  readonly standing: Standing
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
}

/** Never throws: what goes wrong is an obstacle. */
export async function probeDocker(options: DockerProbeOptions): Promise<Probe> {
  let engine: DockerFacts['engine'] | undefined
  const mechanism: Mechanism<DockerFacts> = {
    driver: 'docker',
    tier: 'container',
    runtime: 'docker',
    wordsOf,
    readFacts: async () => ({ ...readHostFacts(), engine: (engine = await askEngine(options)) }),
    runtimeOf: ({ engine: found }) => ('address' in found ? { path: found.address, version: found.version } : undefined),
    obstaclesBefore,
    obstacleOf,
  }
  const { open, sharedFiles, standing } = options
  const ofEngine = (): Promise<CgroupsUnavailable> =>
    Promise.resolve({ unavailable: onlyOneGroup, ...(engine && 'holds' in engine && { enforces: engine.holds }) })
  const cgroups = standing === 'root' ? options.cgroups : ofEngine
  const found = await probeHost({ mechanism, open, cgroups, sharedFiles, trials: undefined })
  return {
    ...found,
    users: { user: { available: true }, root: { available: false, why: 'the container has a single id, without any capability' } },
    features: {
      ...found.features,
      'root-overlay': { available: false, why: 'the root of the container is read-only' },
    },
    facts: { ...found.facts, ids: idWords[standing], ...engineWords(engine) },
  }
}

const idWords: Readonly<Record<Standing, string>> = {
  root: 'one for each cell, from 0x78000000 up',
  user: 'that of whoever calls, without further groups',
}

function engineWords(engine: DockerFacts['engine'] | undefined): Record<string, string> {
  return engine && 'address' in engine ? { runtime: engine.runtime, runtimes: engine.runtimes.join(', ') } : {}
}

interface EngineInfo extends EngineGroups {
  readonly Runtimes?: Readonly<Record<string, unknown>>
  readonly DefaultRuntime?: string
}

async function askEngine({ engine, runtime }: DockerProbeOptions): Promise<DockerFacts['engine']> {
  try {
    const client = await engine()
    const [version, info] = (await Promise.all([client.call('GET', '/version'), client.call('GET', '/info')])) as [{ readonly Version?: string }, EngineInfo]
    const runtimes = Object.keys(info.Runtimes ?? {}).sort()
    if (runtime !== undefined && !runtimes.includes(runtime)) {
      return { what: `no runtime ${runtime}`, why: `the engine knows ${runtimes.join(', ')}`, hint: 'docker info' }
    }
    return {
      ...{ address: describeAddress(client.address), version: version.Version ?? 'unknown', runtimes, runtime: runtime ?? info.DefaultRuntime ?? 'unknown' },
      holds: heldByEngine(info),
    }
  } catch (error) {
    const { message, hint } = error instanceof SandboxError ? error : { message: String(error), hint: undefined }
    return { what: 'no container engine', why: message, hint: hint ?? 'docker version' }
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
