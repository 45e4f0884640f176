import type { Failing } from './faults.js'
import type { LimitName, Limits } from './limits.js'
import type { Expectation, Posture } from './posture.js'
import type { LimitHits } from './run.js'
import type { Mount, RootMode, Tier, UserName } from './spec.js'

/** Limits a driver enforces or not; wall time and output are the engine's in every driver. */
export type DriverLimit = Exclude<LimitName, 'time' | 'output'>

/** What a spec may ask of a driver beyond limits and users. */
export type Feature = 'commands' | 'mounts-ro' | 'mounts-overlay' | 'mounts-rw' | 'root-overlay' | 'pause' | 'liners' | 'network' | 'direct-network'

export type Availability = { readonly available: true } | { readonly available: false; readonly why: string }

/** A thing in the way, and the command that removes it. */
export interface Obstacle {
  readonly what: string
  readonly why: string
  readonly hint: string
}

/**
 * `rlimit`: nothing but what each process is started with, which is the engine's to set. `whole`: it is held for the sandbox with all that serves it, and ends all of
 * that rather than the one program that met it.
 */
export type Enforcement =
  | { readonly enforced: true; readonly by: string; readonly min?: number; readonly max?: number; readonly rlimit?: true; readonly whole?: true }
  | { readonly enforced: false; readonly why: string }

/** What a driver can do on this host, found by trying. */
export interface Probe {
  readonly driver: string
  readonly tier: Tier
  readonly available: boolean
  /** Empty exactly when available. */
  readonly obstacles: readonly Obstacle[]
  readonly limits: Readonly<Record<DriverLimit, Enforcement>>
  /** The users a run may have, and why not the others. */
  readonly users: Readonly<Record<UserName, Availability>>
  readonly features: Readonly<Record<Feature, Availability>>
  /** Guests run under the seccomp filter that the engine hands to the warden. */
  readonly filtersSyscalls: boolean
  /** The cell has its own files, processes, network and environment; false only for `fake`. */
  readonly isolates: boolean
  /** Its programs are processes of a kernel of their own: the host sees what they run in, and not them. */
  readonly ownKernel?: true
  /** Facts worth telling a person: versions, mode, host uid range. */
  readonly facts: Readonly<Record<string, string>>
}

/** A root filesystem as a template describes it; a driver binds it read-only. */
export interface TemplateRoot {
  readonly name: string
  /** Of a built template: what it holds, by content. Not given: it is made of what the machine has. */
  readonly id?: string
  /** To be called before a cell uses it, and disposed of when the cell is gone: nobody removes it meanwhile. Throws SandboxError('conflict') when it is gone. */
  readonly hold?: (cellId: string) => Disposable
  readonly binds: readonly { readonly source: string; readonly target: string }[]
  readonly symlinks: readonly { readonly path: string; readonly target: string }[]
  /** Folders that are there although nothing of the template is in them, so that something can be mounted there; not given: none. */
  readonly folders?: readonly string[]
  readonly shell: string
  readonly env: Readonly<Record<string, string>>
  /** Where runs start, as its image says; the cell's own working folder when not given. */
  readonly workdir?: string
  /** Of a template that was made from an image: the digest that names it elsewhere. */
  readonly imageDigest?: string
}

export interface CellSpec extends Failing {
  readonly id: string
  readonly root: TemplateRoot
  readonly limits: Limits
  readonly rootMode: RootMode
  /** Checked and resolved: each source is an absolute path without links when this is made. */
  readonly mounts: readonly Mount[]
  /** Undefined: every program may be executed. */
  readonly commands: CommandRules | undefined
  /** Whether runs can each be given a liner in it. Only the engine asks for that. */
  readonly liners?: boolean
  /** Not given: nothing in the cell listens for what its programs want of the world, and nothing ever will. */
  readonly network?: CellNetwork
  /**
   * Called before `open` resolves, when runs can begin in the cell and its warden will read what is said to it: that is there sooner than the warden's own word. Nothing may be read from the channel before `open`
   * has resolved, which must be to this cell. A driver need not call it; one whose cell did not open may call it again with the next, once nothing of the one before is left.
   */
  readonly onLaunched?: (cell: Cell) => void
}

/** Where programs find HTTP and SOCKS, on the loopback of a cell with a network and of each liner. */
export const proxyPort = 3128

/** How the programs of a cell reach the way out. Nothing is decided here: what they say is carried to the engine. */
export interface CellNetwork {
  /** Also what they connect to without a proxy, at the ports that the engine names, and their DNS. Needs 'direct-network'. */
  readonly direct: boolean
  /** What they are to trust, as PEM: a file of the host's that is copied into the cell. Not given: what the template trusts. */
  readonly certificates?: string
}

/** What may be executed and read once only some programs may be started; paths as the cell sees them. */
export interface CommandRules {
  /** The programs, with the interpreters and loaders that the kernel needs for them. */
  readonly executable: readonly string[]
  /** Files and folders (with all beneath) that may be read: everything but the other programs. */
  readonly readable: readonly string[]
  /** A program that is not on the list, to try whether it is refused; undefined where there is none. */
  readonly unlisted: string | undefined
}

export interface GuestUser {
  readonly name: UserName
  readonly uid: number
  readonly gid: number
  /** Further groups that its programs cannot be rid of, as the cell sees them; none when not given. */
  readonly groups?: readonly number[]
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
  /** Called with what the warden says of the kernel that it runs on, where the driver asked it to: of the cell, or of a program by its pid before anyone looks at it. */
  told?(of: 'cell' | number, text: string): void
}

/**
 * One place where what programs write is kept: a folder that began empty or with what is `given`, or an overlay on `path`, of which only what was written lies in
 * the folder `index` of the warden's layers folder.
 */
export type CellLayer =
  | {
      readonly kind: 'folder'
      readonly path: string
      readonly given?: readonly GivenEntry[]
      /** Paths in it, absolute, at which something else is mounted; those of other layers and of mounts need not be told. */
      readonly mounted?: readonly string[]
    }
  | { readonly kind: 'overlay'; readonly path: string; readonly index: number }

/** What was in a folder before any program. */
export interface GivenEntry {
  /** Below the folder. */
  readonly path: string
  readonly type: 'file' | 'folder' | 'link'
  readonly mode: number
  /** Of a link; otherwise empty. */
  readonly target: string
}

/** What an overlay lies over, as the cell would show it had nothing been written. Paths are below its top, with one character for each byte (Latin-1). */
export interface Beneath extends AsyncDisposable {
  /** Undefined when there is nothing that a program could see. No link is followed. */
  look(path: string): Promise<BeneathEntry | undefined>
  /** In a folder, sorted; none when it is not there. */
  names(path: string): Promise<readonly string[]>
  /** SHA-256 of a file's content, hexadecimal. */
  hash(path: string): Promise<string>
}

export interface BeneathEntry {
  readonly type: 'file' | 'folder' | 'link' | 'fifo' | 'socket' | 'device'
  readonly mode: number
  /** As the cell sees them. */
  readonly uid: number
  readonly gid: number
  readonly size: number
  /** Of a link, as bytes like a path; otherwise empty. */
  readonly target: string
}

export interface Cell {
  /** The warden's stdin and stdout. Its end is the cell's end. */
  readonly channel: CellChannel
  readonly users: readonly GuestUser[]
  /** Where runs start when nothing else is said. */
  readonly workdir: string
  /** Everywhere that its programs can write and that goes with it: not what is mounted read-write. */
  readonly layers: readonly CellLayer[]
  /**
   * Of the overlay with this index; only where there are overlays, and what is written over them can be told from it. Throws SandboxError('conflict') when it is not
   * what it was when the cell was opened.
   */
  readonly beneath?: (index: number) => Promise<Beneath>
  /** Undefined where no run can have one. */
  readonly liners?: CellLiners | undefined
  /** What its programs find in their environment unless they are given something else; not given: nothing. */
  readonly env?: Readonly<Record<string, string>>
  /** What must be observed of the cell as a whole; its programs' own posture is the engine's to demand. */
  readonly expects: readonly Expectation[]
  /** What went wrong, in the runtime's own words, for the message when the channel ends early. */
  diagnosis(): string
  /** A place for one run, where it is counted and limited by itself. */
  beginRun(limits: RunLimits): CellRun
  /** Throws SandboxError: 'unsupported' for a limit that this cell cannot change, 'conflict' when more than that is in use; then nothing was changed. */
  limit(limits: Limits): Promise<void>
  /** What holds now, each item with its evidence. Throws SandboxError('broken') when what is asked about is gone. */
  posture(subject: PostureSubject): Promise<readonly Posture[]>
  usage(): Promise<CellUsage>
  /**
   * Processor time of what lives in it and of what that has waited for: compared with an earlier answer it tells whether anything works. Undefined
   * where nobody can tell.
   */
  worked(): number | undefined
  /**
   * Every program stands still but these; the warden does not. Resolves when they really do. Throws SandboxError: 'unsupported' where that cannot be done, 'busy'
   * when it did not come about; then they go on.
   */
  pause(besides?: readonly Bystander[]): Promise<void>
  resume(): Promise<void>
  /** Also of what is paused. Idempotent; leaves no process, mount, cgroup, uid or file. */
  close(): Promise<void>
}

/** What the liners of a cell are like. */
export interface CellLiners {
  /** What must be observed of each as a whole, beside what is of its program. */
  readonly expects: readonly Expectation[]
  /** The same of what listens in it, where the way out has these ports too; not given: that is not observed. */
  sockets?(ports: readonly number[]): Expectation
  /** As whom a zygote runs, as the cell sees it. */
  readonly zygote: Pick<GuestUser, 'uid' | 'gid' | 'groups'>
}

/** A program that forks nothing, and goes on while the others stand still. */
export interface Bystander {
  /** As the cell sees it. */
  readonly pid: number
  /** Of its run, in which it is alone. */
  readonly group: string | undefined
}

/** The cell as a whole; one program that waits at its gate, by its pid in the cell; or every process and thread there is. */
export type PostureSubject =
  | { readonly kind: 'cell' }
  | { readonly kind: 'program'; readonly pid: number; readonly depth: 'full' | 'short'; readonly group: string | undefined; readonly liner?: boolean }
  | { readonly kind: 'everything' }

/** Undefined: held only by the sandbox's own. */
export interface RunLimits {
  readonly memoryBytes: number | undefined
  readonly processes: number | undefined
}

export interface CellRun {
  /** What START names, so that the program enters it; undefined where there is none. */
  readonly group: string | undefined
  usage(): RunCounts
  /** It was begun before anyone had a program for it: what others met until now is not to be told of it. */
  countFromNow(): void
  /** Whether processes of it are left, as far as that can be told. */
  isPopulated(): boolean
  /** Its program is on its way and nobody waits for anything: what the next run needs may be made ready now. */
  spareTime(): void
  /** The limit is lifted no sooner than the last of its processes has ended. Idempotent. */
  close(): Promise<void>
}

/** Undefined where nothing counts it. */
export interface RunCounts {
  readonly cpuMs: number | undefined
  readonly memoryPeakBytes: number | undefined
  readonly processesPeak: number | undefined
  readonly hits: { readonly [Name in keyof LimitHits]: number | undefined }
}

export interface CellUsage extends RunCounts {
  /** Now. */
  readonly memoryBytes: number | undefined
  readonly processes: number | undefined
  /** On its disk. */
  readonly diskBytes?: number | undefined
}

export interface Driver {
  readonly name: string
  readonly tier: Tier
  /** Neither tried nor chosen as long as another can do all that was asked for, unless it is named. */
  readonly standby?: boolean
  /** Never throws, never hangs. */
  probe(): Promise<Probe>
  open(spec: CellSpec, signal: AbortSignal): Promise<Cell>
}
