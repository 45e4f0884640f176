import type { CodeRequest, ContextInfo, ContextRequest, PlatformCode, PlatformExecution } from '../contract/code.js'
import type { DriverLimit, Feature, Probe } from '../contract/driver.js'
import type { FileCalls } from '../contract/files.js'
import type { LimitsInput, RunLimitsInput } from '../contract/limits.js'
import type { CallOptions, SandboxUsage } from '../contract/platform.js'
import type { ProcessInfo, ProcessName } from '../contract/processes.js'
import type { Receipt } from '../contract/receipt.js'
import type { Command, Ending, OutputEvent, Outcome, Usage, SignalName, TerminalSize } from '../contract/run.js'
import type { Change, SnapshotInfo } from '../contract/snapshots.js'
import type { SpecInput, UserName } from '../contract/spec.js'

/**
 * What the cases are run against. A driver alone, an engine over it, or a client over HTTP all fit this shape, so the
 * same promises are held at every depth. The cases know nothing but this: the machine around the subject is seen
 * through its `HostView`.
 */
export interface Subject {
  readonly name: string
  readonly depth: Depth
  readonly probe: Probe
  readonly host: HostView
  open(spec?: SpecInput, options?: { readonly signal?: AbortSignal }): Promise<SubjectSandbox>
  /** Sandboxes that are kept ready. Only an engine has these. */
  pool?(options: { readonly size: number }): Promise<SubjectPool>
  /** Where the probe says that there are liners: each run has one of its own, in a cell that others have theirs in. */
  lined?(spec: SpecInput): Promise<SubjectLined>
}

export type SubjectLined = Pick<SubjectSandbox, 'run' | 'close'>

export interface SubjectPool {
  acquire(): Promise<{ readonly id: string; readonly sandbox: SubjectSandbox }>
  /** In a sandbox of its own. */
  run(command: Command): Promise<SubjectResult>
  close(): Promise<void>
}

export type Depth = 'driver' | 'engine' | 'client'

export interface SubjectSandbox {
  /** Captures all that the command prints. A command that fails is a result; a sandbox that fails rejects. */
  run(command: Command, options?: SubjectRunOptions): Promise<SubjectResult>
  /** For what has to be talked to while it runs. Nothing is captured. */
  start(command: Command, options?: SubjectStartOptions): Promise<SubjectProcess>
  /** Everything in it stands still; 'unsupported' where that cannot be. Only an engine can keep files without memory. */
  pause(options?: { readonly memory?: boolean }): Promise<void>
  resume(): Promise<void>
  /** Connects to a port of its loopback, sends this and ends that direction; all that comes back. 'not-found' when nothing listens. */
  exchange(port: number, bytes: Uint8Array): Promise<Uint8Array>
  readonly files: FileCalls
  /** Only an engine has these. */
  limit?(limits: LimitsInput): Promise<void>
  usage?(): Promise<SandboxUsage>
  receipt?(): Promise<Receipt>
  readonly snapshots?: SubjectSnapshots
  readonly processes?: SubjectProcesses
  readonly code?: SubjectCode
  close(): Promise<void>
}

/** Programs that are kept. */
export interface SubjectProcesses {
  readonly keep: (command: Command, options?: SubjectStartOptions & { readonly tag?: string; readonly terminal?: TerminalSize }) => Promise<SubjectKept>
  readonly attach: (name: ProcessName, options?: { readonly replay?: boolean }) => Promise<SubjectKept>
  readonly list: () => Promise<readonly ProcessInfo[]>
}

export interface SubjectKept extends SubjectProcess {
  resize(size: TerminalSize): Promise<void>
}

/** Code in contexts, of one sandbox. */
export interface SubjectCode {
  languages(): ReturnType<PlatformCode['languages']>
  execute(request: CodeRequest, options?: CallOptions): Promise<PlatformExecution>
  create(request?: ContextRequest): Promise<ContextInfo>
  list(): Promise<readonly ContextInfo[]>
  restart(context: string): Promise<ContextInfo>
  remove(context: string): Promise<boolean>
}

/** Of one sandbox; `remove` is of all that are kept. */
export interface SubjectSnapshots {
  take(options: { readonly name?: string }): Promise<SnapshotInfo>
  diff(options: { readonly since?: string }): Promise<readonly Change[]>
  fork(count: number): Promise<readonly SubjectSandbox[]>
  remove(snapshot: string): Promise<boolean>
}

export interface SubjectStartOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly user?: UserName
  /** Wall time; only an engine enforces it. */
  readonly timeout?: string | number
  /** Whether stdin stays open to be written to; otherwise the program reads an end of file. */
  readonly stdin?: boolean
}

export interface SubjectRunOptions extends Omit<SubjectStartOptions, 'stdin'> {
  /** All of the input, or nothing at all when it is left out. */
  readonly stdin?: Uint8Array
  /** Below the sandbox's own. */
  readonly limits?: RunLimitsInput
  /** Only an engine enforces it. */
  readonly output?: { readonly limit: number; readonly onLimit: 'kill' | 'truncate' }
  readonly signal?: AbortSignal
}

export interface SubjectResult {
  readonly outcome: Outcome
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
  readonly usage: Usage
  readonly truncated: boolean
}

export interface SubjectProcess {
  readonly pid: number
  /** One consumer. */
  readonly output: AsyncIterable<OutputEvent>
  write(bytes: Uint8Array): Promise<void>
  endInput(): Promise<void>
  signal(name: SignalName): Promise<void>
  kill(): Promise<void>
  readonly ended: Promise<Ending>
}

/** The machine the subject runs on, as seen from outside the cells. */
export interface HostView {
  readonly canaries: Canaries
  /** The host's own namespaces by kind (`pid`, `net`, …), as the kernel names them. */
  readonly namespaces: Readonly<Record<string, string>>
  snapshot(): Promise<HostSnapshot>
  /** Opens and reads a file of the host's, as any of its programs would. */
  readFile(path: string): Promise<void>
  /** What the kernel says could be had without swapping. */
  availableMemoryBytes(): Promise<number>
  /** What the kernel tells, from outside, of every thread of the processes that match; of what it does not tell this user, nothing. */
  look(which: ProcessChoice): Promise<readonly ThreadFacts[]>
  /** A small static program for this machine's processor that tries the kernel's doors (warden/prober.c); undefined where there is none. */
  prober(): Promise<Uint8Array | undefined>
  /** What no sandbox may change of the machine, by kind, a line for each thing. What other programs are known to do all the time is left out. */
  invariants(): Promise<Readonly<Record<InvariantKind, readonly string[]>>>
}

/** By a part of the command line, or by the process namespace. */
export type ProcessChoice = { readonly marker: string } | { readonly pidNamespace: string }

/** One thread as /proc shows it to the host. */
export interface ThreadFacts {
  readonly pid: number
  readonly tid: number
  readonly command: string
  /** Of /proc/PID/task/TID/status, by name. */
  readonly status: Readonly<Record<string, string>>
  readonly namespaces: Readonly<Record<string, string>>
  /** Lines of mountinfo. */
  readonly mounts: readonly string[]
  /** Where each descriptor leads. */
  readonly descriptors: Readonly<Record<string, string>>
  /** Soft and hard, by the kernel's name. */
  readonly limits: Readonly<Record<string, readonly [soft: string, hard: string]>>
  readonly uidMap: string
  readonly gidMap: string
  readonly environment: readonly string[]
  readonly cgroups: readonly string[]
  readonly oomScoreAdj: string
}

export type InvariantKind =
  | 'files'
  | 'settings'
  | 'mounts'
  | 'cgroups'
  | 'processes'
  | 'listeners'
  | 'shared-memory'
  | 'network-namespaces'
  | 'interfaces'
  | 'loop-devices'
  | 'modules'
  | 'taint'
  | 'temporary-files'

/** What a closed sandbox may leave none of. Each list holds one line per thing, the same line every time it is looked at. */
export interface HostSnapshot {
  /** Every process that can be seen. */
  readonly processes: readonly HostProcess[]
  readonly mounts: readonly string[]
  readonly cgroups: readonly string[]
  /** State, records and temporary files of the engine. */
  readonly files: readonly string[]
  /** What the engine's process holds open. */
  readonly descriptors: readonly string[]
}

export interface HostProcess {
  readonly pid: number
  readonly command: string
  /** A descendant of the engine's process. */
  readonly ofEngine: boolean
}

/** Planted on the host before anything runs; a cell that shows any of them leaks. */
export interface Canaries {
  /** Mode 0600, in a folder with a random name. */
  readonly file: { readonly path: string; readonly content: string; isUntouched(): Promise<boolean> }
  /** Has the canary variable in its environment. */
  readonly process: { readonly pid: number; readonly marker: string }
  readonly tcp4: Listener & { readonly port: number }
  /** Undefined where the host has no IPv6. */
  readonly tcp6: (Listener & { readonly port: number }) | undefined
  /** The name without the leading NUL; undefined where no such listener could be had. */
  readonly abstractSocket: (Listener & { readonly name: string }) | undefined
  /** Set in the environment of the engine's process. */
  readonly variable: { readonly name: string; readonly value: string }
  /** Held open by the engine's process. */
  readonly descriptor: number
  /** Of System V, for everyone to attach; undefined where none could be had. */
  readonly sharedMemory: { readonly key: number } | undefined
}

export interface Listener {
  /** How many have connected so far. */
  readonly connections: () => number
}

/** A condition that `probe()` or the depth decides; a case whose needs are not met is skipped with the reason. */
export type Need =
  | 'engine'
  | 'isolates'
  | 'own-inodes'
  | 'own-kernel'
  | 'shared-kernel'
  | 'job-control'
  | 'filters-syscalls'
  | 'user:root'
  | 'no-user:root'
  | `feature:${Feature}`
  | `no-feature:${Feature}`
  | `limit:${DriverLimit}`
  | `no-limit:${DriverLimit}`

export interface Case {
  /** `group/what`, never changed once published. */
  readonly id: string
  /** The promise, as a sentence. */
  readonly name: string
  readonly needs?: readonly Need[]
  /** How long it may take; what all cases may when not given. */
  readonly patienceMs?: number
  /** A refusal by the cell's walls: it must go red when there are none. */
  readonly denial?: true
  /** Leaves nothing in a sandbox that another case could meet, so that one may serve many of these. */
  readonly shares?: true
  /** Resolves to what was observed; throws when the promise does not hold. */
  run(subject: Subject): Promise<string>
}
