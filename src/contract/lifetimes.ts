import * as z from 'zod'
import type { ErrorCode } from './errors.js'
import type { LimitName } from './limits.js'
import type { NetworkRecord } from './network.js'
import type { CallOptions, SandboxInfo } from './platform.js'
import type { Ending } from './run.js'

export const keepsMemorySchema = z.boolean().default(true)
export const expiryActs = ['close', 'pause'] as const
export type ExpiryAct = (typeof expiryActs)[number]

export interface PauseOptions extends CallOptions {
  /** False: only id, spec and files are kept; its programs end, nothing else of it is left, and resuming builds another cell. True unless given. */
  readonly memory?: boolean
}

/** The limits that a program can meet while it runs. */
export type MetLimit = Extract<LimitName, 'time' | 'cpuTime' | 'memory' | 'processes' | 'output'>

/** What happened to a sandbox, with the reason. */
export type SandboxEvent =
  | { readonly type: 'exit'; readonly at: string; readonly pid: number; readonly tag?: string; readonly ending: Ending }
  | { readonly type: 'paused' | 'resumed'; readonly at: string; readonly reason: string }
  /** Its lifetime or its idle time is over; `closed` or `paused` follows. */
  | { readonly type: 'expired'; readonly at: string; readonly reason: string }
  /** A program met a limit. */
  | { readonly type: 'limited'; readonly at: string; readonly limit: MetLimit; readonly reason: string }
  /** A program wanted to go where its network does not lead. */
  | { readonly type: 'denied'; readonly at: string; readonly reason: string; readonly attempt: NetworkRecord }
  /** Only to a reader that was too slow: events before this one were dropped. */
  | { readonly type: 'missed'; readonly at: string; readonly reason: string }
  /** The last one. */
  | { readonly type: 'closed'; readonly at: string; readonly code: ErrorCode; readonly reason: string }

export interface PlatformLife {
  /**
   * The programs stand still, their clocks too: neither processor nor wall time of a run goes on, nor the sandbox's own lifetime. Nothing can be
   * started, read or reached until it is resumed. Quiet when it is paused.
   */
  pause(id: string, options?: PauseOptions): Promise<SandboxInfo>
  /** Quiet when it runs. */
  resume(id: string, options?: CallOptions): Promise<SandboxInfo>
  /** It lives at least so long from now; never shortens. */
  extend(id: string, duration: number | string, options?: CallOptions): Promise<SandboxInfo>
  /** It lives so long from now. */
  setLifetime(id: string, duration: number | string, options?: CallOptions): Promise<SandboxInfo>
  /** From now on; ends after `closed`. Leaving the iteration is quiet. */
  events(id: string, options?: CallOptions): AsyncIterable<SandboxEvent>
}
