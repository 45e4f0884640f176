import type { Platform } from '../contract/platform.js'
import type { PlatformSettings } from '../contract/platform-settings.js'
import type { Sandbox } from '../sandbox/index.js'
import type { PoolDoor } from './pool-door.js'
import type { Missing, Table } from './report.js'
import type { Subject } from './sampling.js'

/** Another way to do the same job, found on this machine: run `python3 -c 'print(1)'` and hand its output back. */
export interface Peer extends Subject {
  readonly version: string
  /** Starts so many that do nothing, and tells what they take of memory together; removes them before it resolves. */
  readonly idleBytes?: (count: number) => Promise<number>
}

export interface Peers {
  readonly found: readonly Peer[]
  readonly missing: readonly Missing[]
}

/** What the sections measure on; handed in by whoever knows the whole package. */
export interface Ground {
  readonly Sandbox: Pick<typeof Sandbox, 'create'>
  /** Undefined where the library has no pools. */
  readonly SandboxPool: PoolDoor | undefined
  readonly createPlatform: (settings?: PlatformSettings) => Platform
  readonly platform: Platform
  /** The command line that is this package's own CLI. */
  readonly cli: readonly string[]
  readonly peers: Peers
  readonly rounds: number
  readonly signal: AbortSignal
}

export interface Section {
  readonly name: string
  readonly title: string
  /** One that is left out unless it is asked for: it takes minutes, or much memory. */
  readonly isLong: boolean
  measure(ground: Ground): Promise<Omit<Table, 'section' | 'title'>>
}
