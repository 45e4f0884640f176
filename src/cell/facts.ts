import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type NativeName, nativeProgram } from '../sys/native.js'
import { capture } from '../sys/spawn.js'

/** All that the judgement about a host rests on, so that it can be judged without being that host. */
export interface HostFacts {
  readonly platform: string
  readonly uid: number
  /** CapEff of this process. */
  readonly capabilities: bigint
  /** Rows of our own uid_map: first id inside, first outside, count. */
  readonly uidMap: readonly (readonly [number, number, number])[]
  readonly kernel: readonly [number, number]
  readonly missingPrograms: readonly string[]
  readonly sysctls: {
    readonly unprivilegedUsernsClone: string | undefined
    readonly maxUserNamespaces: string | undefined
    readonly apparmorRestrictsUserns: string | undefined
  }
  /** What says that we are in a container, if anything. */
  readonly container: string | undefined
  readonly memoryBytes: number
  /** The most descriptors that a process started from here may have: the hard limit of our own. */
  readonly openFiles: number
}

const natives: readonly NativeName[] = ['launcher', 'warden']

/** What decides whether a cell can have ids of its own. */
export type IdFacts = Pick<HostFacts, 'uid' | 'capabilities' | 'uidMap'>

export function readIdFacts(): IdFacts {
  return {
    uid: process.getuid?.() ?? -1,
    capabilities: BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(read('/proc/self/status') ?? '')?.[1] ?? '0'}`),
    uidMap: (read('/proc/self/uid_map') ?? '').split('\n').flatMap(uidMapRow),
  }
}

export function readHostFacts(): HostFacts {
  return {
    platform: process.platform,
    ...readIdFacts(),
    kernel: kernelVersion(read('/proc/sys/kernel/osrelease') ?? ''),
    missingPrograms: natives.filter((name) => !isBuilt(name)),
    sysctls: {
      unprivilegedUsernsClone: read('/proc/sys/kernel/unprivileged_userns_clone')?.trim(),
      maxUserNamespaces: read('/proc/sys/user/max_user_namespaces')?.trim(),
      apparmorRestrictsUserns: read('/proc/sys/kernel/apparmor_restrict_unprivileged_userns')?.trim(),
    },
    container: findContainer(),
    memoryBytes: Number(/^MemTotal:\s*(\d+) kB/m.exec(read('/proc/meminfo') ?? '')?.[1] ?? 0) * 1024,
    openFiles: Number(/^Max open files\s+\S+\s+(\d+)/m.exec(read('/proc/self/limits') ?? '')?.[1] ?? 1024),
  }
}

/** What a cell is built with, and its version as it tells it. */
export interface RuntimeProgram {
  readonly path: string
  readonly version: string
}

/** From the usual places and then PATH, because what is found here is later run as root. */
export function programPath(name: string): string | undefined {
  const folders = ['/usr/bin', '/usr/local/bin', '/bin', ...(process.env.PATH ?? '').split(':').filter((folder) => folder.startsWith('/'))]
  return folders.map((folder) => join(folder, name)).find(isExecutable)
}

/** It is asked for its version, unless that is known. */
export async function findProgram(path: string | undefined, version: string | undefined): Promise<RuntimeProgram | undefined> {
  if (path === undefined) return undefined
  if (version !== undefined) return { path, version }
  const answer = await capture([path, '--version'], { timeoutMs: 5000 }).catch(() => undefined)
  const [said = ''] = answer?.stdout.toString('utf8').split('\n') ?? []
  // Some count by days, and have other numbers before that.
  return { path, version: (/\d{8}(?:\.\d+)?/.exec(said) ?? /\d+\.\d+(?:\.\d+)?/.exec(said))?.[0] ?? 'unknown' }
}

function findContainer(): string | undefined {
  const marks = ['/.dockerenv', '/run/.containerenv', '/run/systemd/container']
  return marks.find((path) => existsSync(path)) ?? (/^\S*(docker|kubepods|libpod|lxc)\S*$/m.test(read('/proc/1/cgroup') ?? '') ? '/proc/1/cgroup' : undefined)
}

function uidMapRow(line: string): [number, number, number][] {
  const [inside, outside, count] = line.trim().split(/\s+/).map(Number)
  return inside === undefined || outside === undefined || count === undefined ? [] : [[inside, outside, count]]
}

function kernelVersion(release: string): [number, number] {
  const [major = 0, minor = 0] = release.split('.').map((part) => Number.parseInt(part, 10) || 0)
  return [major, minor]
}

function isBuilt(name: NativeName): boolean {
  try {
    return nativeProgram(name) !== ''
  } catch {
    return false
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
