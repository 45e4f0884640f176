import type { PlatformChanges } from './changes.js'
import type { PlatformCode } from './code.js'
import type { Probe } from './driver.js'
import type { PlatformEvents } from './events.js'
import type { PlatformLife } from './lifetimes.js'
import type { PlatformFiles } from './files.js'
import type { LimitName, LimitsInput } from './limits.js'
import type { Clamping } from './policy.js'
import type { CreationOptions, PlatformNetwork } from './platform-network.js'
import type { PlatformPools } from './pools.js'
import type { PlatformPorts } from './ports.js'
import type { PlatformProcesses } from './processes.js'
import type { Receipt } from './receipt.js'
import type { Ending, LimitHits, OutputEvent, RunRequest, SignalName, TerminalSize } from './run.js'
import type { PlatformSnapshots } from './snapshots.js'
import type { Spec, SpecInput, Tier } from './spec.js'

export interface CallOptions {
  readonly signal?: AbortSignal
}

export type SandboxState = 'running' | 'paused' | 'closed'

export interface SandboxInfo {
  readonly id: string
  /** Whose it is, on a platform that serves tenants; told by the door that knew, never by whoever asked. */
  readonly tenant?: string
  readonly state: SandboxState
  readonly spec: Spec
  /** Of a built template, by its content; not given where the template is what the machine has. */
  readonly templateId?: string
  /** Of a template that was made from an image: the digest that names the image elsewhere. */
  readonly imageDigest?: string
  readonly driver: string
  readonly tier: Tier
  /** Of one that came from a pool: whether it was ready when it was asked for, or had to be waited for. Otherwise it was made for whoever asked. */
  readonly pool?: 'hit' | 'miss'
  readonly createdAt: string
  /** When it closes, or pauses, unless that is changed; while it is paused, when it closes unless it is resumed. */
  readonly expiresAt: string
  /** Default limits that nothing enforces here, each with the reason. Stated limits are never in this list: they are refused instead. */
  readonly unenforced: readonly { readonly limit: LimitName; readonly why: string }[]
  /** What was asked for and is above a cap of a policy that lowers instead of refusing. */
  readonly clamped: readonly Clamping[]
}

export interface SandboxFilter {
  readonly name?: string
  readonly agent?: string
  readonly metadata?: Readonly<Record<string, string>>
}

/** One program in a sandbox, as a platform hands it out. */
export interface PlatformProcess {
  /** The pid seen inside the cell; 0 when the program did not start. */
  readonly pid: number
  /**
   * Ends when the program's output has ended. Of a run it is read by one consumer, and not reading it holds the program back. Of a process that is kept
   * each iteration is a reader of its own, which begins where this view does; not reading holds nothing back, and what is missed is told as `dropped`.
   */
  readonly output: AsyncIterable<OutputEvent>
  /** Resolves when the bytes are accepted; a program that closed its stdin swallows them quietly, 'conflict' when it ended before. */
  write(bytes: Uint8Array): Promise<void>
  endInput(): Promise<void>
  /** To the program's process group; quiet when it has ended. */
  signal(name: SignalName): Promise<void>
  /** Of its terminal; 'conflict' when it has none, quiet when it has ended. */
  resize(size: TerminalSize): Promise<void>
  /** With all its descendants; resolves when none is left. */
  kill(reason?: string): Promise<void>
  /** Whether this process of Node.js goes on for as long as the program does: it does, unless `unref` was called last, by any of its views. */
  ref(): void
  unref(): void
  /** Settles when the program has ended and its output is read to the end (or dropped). Rejects only when the sandbox fails. */
  readonly ended: Promise<Ending>
}

/** What a sandbox used so far, all its runs together; `null` where nothing counts it. */
export interface SandboxUsage {
  readonly wallMs: number
  readonly cpuMs: number
  readonly memoryBytes: number | null
  readonly memoryPeakBytes: number
  readonly processes: number | null
  readonly processesPeak: number | null
  /** On its disk now. */
  readonly diskBytes: number | null
  readonly readBytes: number
  readonly writtenBytes: number
  readonly outputBytes: number
  readonly runs: number
  readonly hits: LimitHits
}

/** What every door talks to. The engine is one; a client over HTTP will be another. */
export interface Platform extends AsyncDisposable {
  readonly changes: PlatformChanges
  readonly code: PlatformCode
  readonly events: PlatformEvents
  readonly files: PlatformFiles
  readonly snapshots: PlatformSnapshots
  readonly life: PlatformLife
  readonly network: PlatformNetwork
  readonly pools: PlatformPools
  readonly ports: PlatformPorts
  readonly processes: PlatformProcesses
  create(spec: SpecInput, options?: CreationOptions): Promise<SandboxInfo>
  info(id: string, options?: CallOptions): Promise<SandboxInfo>
  list(filter?: SandboxFilter, options?: CallOptions): AsyncIterable<SandboxInfo>
  start(id: string, request: RunRequest, options?: CallOptions): Promise<PlatformProcess>
  /** Changes limits of a live sandbox; those that cannot be changed or enforced are refused, and then none is changed. */
  limit(id: string, limits: LimitsInput, options?: CallOptions): Promise<SandboxInfo>
  usage(id: string, options?: CallOptions): Promise<SandboxUsage>
  /** What is enforced, read again from the kernel now, and what was run so far; signed. */
  receipt(id: string, options?: CallOptions): Promise<Receipt>
  /** Idempotent: a sandbox that is gone is quiet. Resolves when nothing of it is left. */
  close(id: string): Promise<void>
  /** Closes all that match; without a filter all there are. Resolves to how many were closed. */
  closeAll(filter?: SandboxFilter): Promise<number>
  /** What each driver can do on this machine. */
  probe(options?: CallOptions): Promise<readonly Probe[]>
}
