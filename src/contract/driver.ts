import type { LimitName, Limits } from './limits.js'
import type { Tier, UserName } from './spec.js'

/** Limits a driver enforces or not; wall time and output are the engine's in every driver. */
export type DriverLimit = Exclude<LimitName, 'time' | 'output'>

/** A thing in the way, and the command that removes it. */
export interface Obstacle {
  readonly what: string
  readonly why: string
  readonly hint: string
}

export type Enforcement = { readonly enforced: true; readonly by: string; readonly max?: number } | { readonly enforced: false; readonly why: string }

/** What a driver can do on this host, found by trying. */
export interface Probe {
  readonly driver: string
  readonly tier: Tier
  readonly available: boolean
  /** Empty exactly when available. */
  readonly obstacles: readonly Obstacle[]
  readonly limits: Readonly<Record<DriverLimit, Enforcement>>
  /** The users a run may have, and why not the others. */
  readonly users: Readonly<Record<UserName, { readonly available: true } | { readonly available: false; readonly why: string }>>
  /** Guests run under the seccomp filter that the engine hands to the warden. */
  readonly filtersSyscalls: boolean
  /** The cell has its own files, processes, network and environment; false only for `fake`. */
  readonly isolates: boolean
  /** Facts worth telling a person: versions, mode, host uid range. */
  readonly facts: Readonly<Record<string, string>>
}

/** A root filesystem as a template describes it; a driver binds it read-only. */
export interface TemplateRoot {
  readonly name: string
  readonly binds: readonly { readonly source: string; readonly target: string }[]
  readonly symlinks: readonly { readonly path: string; readonly target: string }[]
  readonly shell: string
  readonly env: Readonly<Record<string, string>>
}

export interface CellSpec {
  readonly id: string
  readonly root: TemplateRoot
  readonly limits: Limits
}

export interface GuestUser {
  readonly name: UserName
  readonly uid: number
  readonly gid: number
  readonly home: string
  /** Capabilities handed to its programs, as the kernel's bit mask. */
  readonly capabilities: bigint
}

/** A stream of bytes in both directions: as much of Node's Duplex as is used, so that whoever reads these types needs none of Node's. */
export interface CellChannel {
  readonly destroyed: boolean
  readonly readableEnded: boolean
  readonly writableNeedDrain: boolean
  on(event: 'data', listener: (bytes: Uint8Array) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'drain' | 'end' | 'close', listener: () => void): unknown
  /** Calls back when the bytes are taken. */
  write(bytes: Uint8Array, taken?: () => void): unknown
  /** Between these two, what is written is held to leave in one piece. */
  cork(): void
  uncork(): void
  end(): unknown
  destroy(): unknown
  /** Whether it keeps this process alive, where it can tell. */
  ref?(): unknown
  unref?(): unknown
}

export interface Cell {
  /** The warden's stdin and stdout. Its end is the cell's end. */
  readonly channel: CellChannel
  readonly users: readonly GuestUser[]
  /** Where runs start when nothing else is said. */
  readonly workdir: string
  /** What went wrong, in the runtime's own words, for the message when the channel ends early. */
  diagnosis(): string
  usage(): Promise<CellUsage>
  /** Idempotent; leaves no process, mount, cgroup, uid or file. */
  close(): Promise<void>
}

export interface CellUsage {
  /** Processes the kernel killed in this cell for want of memory; undefined where nothing counts them. */
  readonly oomKills: number | undefined
}

export interface Driver {
  readonly name: string
  readonly tier: Tier
  /** Never throws, never hangs. */
  probe(): Promise<Probe>
  open(spec: CellSpec, signal: AbortSignal): Promise<Cell>
}
