/** What an engine says of itself before anything is asked of it. */
import type { Obstacle } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import type { EngineClient } from '../../sys/docker/client.js'
import type { EngineGroups } from './engine-cgroup.js'

export interface EngineInfo extends EngineGroups {
  readonly Runtimes?: Readonly<Record<string, { readonly path?: string; readonly runtimeArgs?: readonly string[] } | null>>
  readonly DefaultRuntime?: string
  readonly Architecture?: string
  readonly MemTotal?: number
  readonly KernelVersion?: string
  readonly DockerRootDir?: string
  /** How it stores what containers write. */
  readonly Driver?: string
  readonly SecurityOptions?: readonly string[] | null
}

/** As engines call them. */
const architectures: Readonly<Record<string, readonly string[]>> = { x64: ['x86_64', 'amd64'], arm64: ['aarch64', 'arm64'] }

/** Throws where it does not answer. */
export async function introduce(client: EngineClient): Promise<{ readonly version: string; readonly info: EngineInfo } | Obstacle> {
  const [{ Version = 'unknown' }, info] = (await Promise.all([client.call('GET', '/version'), client.call('GET', '/info')])) as [
    { readonly Version?: string },
    EngineInfo,
  ]
  const { Architecture } = info
  if (Architecture !== undefined && architectures[process.arch]?.includes(Architecture) !== true)
    return { what: 'another architecture', why: `the engine’s machine is ${Architecture}, and our programs are for ${process.arch}`, hint: 'docker info' }
  return { version: Version, info }
}

/** One that did not answer, or not as engines do. */
export function noEngine(error: unknown): Obstacle {
  const { message, hint } = error instanceof SandboxError ? error : { message: String(error), hint: undefined }
  return { what: 'no container engine', why: message, hint: hint ?? 'docker version' }
}

/** By the names that runtimes of gVisor are given. */
export function isGvisor(runtime: string): boolean {
  return /^(runsc|gvisor)/.test(runtime)
}
