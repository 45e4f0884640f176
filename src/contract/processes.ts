import type { CallOptions, PlatformProcess } from './platform.js'
import type { Ending } from './run.js'
import type { UserName } from './spec.js'

/** By the pid seen inside, or by the tag that it was started with. Those that run come first, then the latest that has ended. */
export type ProcessName = number | string

export type ProcessState = 'running' | 'sleeping' | 'stopped' | 'ended'

export interface ProcessInfo {
  readonly pid: number
  readonly tag?: string
  /** As it was asked for: a string is for the shell. */
  readonly command: string | readonly string[]
  readonly user: UserName
  readonly isTerminal: boolean
  readonly state: ProcessState
  readonly startedAt: string
  /** With all that it started; of one that has ended all it used. Where nothing counts the run as a whole, of those of its processes that live. */
  readonly cpuMs: number
  /** Resident now, with all that it started; a page that two of them share is counted twice. */
  readonly memoryBytes: number
  /** How many processes it consists of now, with all that it started. */
  readonly processes: number
  /** Set exactly when it has ended; told for a while after. */
  readonly ending?: Ending
}

export interface AttachOptions extends CallOptions {
  /** Begin with what is still kept of its output, instead of with what comes next. */
  readonly replay?: boolean
  /** False: its output ends with what is there now, instead of going on until the program does. */
  readonly follow?: boolean
}

export interface PlatformProcesses {
  /** Those that are kept and run, in the order in which they were started, and before them the latest hundred that have ended. */
  list(id: string, options?: CallOptions): Promise<readonly ProcessInfo[]>
  /** Another view of a program that is kept, also when it has ended. Any number may be held at once; leaving one ends nothing. */
  attach(id: string, process: ProcessName, options?: AttachOptions): Promise<PlatformProcess>
}
