import type { CallOptions, PlatformProcess } from './platform.js'
import type { Ending } from './run.js'
import type { UserName } from './spec.js'

export interface TerminalSize {
  readonly cols: number
  readonly rows: number
}

/** By the pid seen inside, or by the tag that it was started with. */
export type ProcessName = number | string

export type ProcessState = 'running' | 'sleeping' | 'stopped' | 'ended'

export interface ProcessInfo {
  readonly pid: number
  readonly tag?: string
  /** As it was asked for. */
  readonly command: string | readonly string[]
  readonly user: UserName
  readonly isTerminal: boolean
  readonly state: ProcessState
  readonly startedAt: string
  /** With all that it started; of one that has ended all it used. */
  readonly cpuMs: number
  /** Resident now, with all that it started. */
  readonly memoryBytes: number
  /** How many processes it consists of now, with all that it started. */
  readonly processes: number
  /** Set exactly when it has ended; told for a while after. */
  readonly ending?: Ending
}

export interface AttachOptions extends CallOptions {
  /** Begin with what is still kept of its output, instead of with what comes next. */
  readonly replay?: boolean
}

export interface PlatformProcesses {
  /** Those that run, and the latest that have ended. */
  list(id: string, options?: CallOptions): Promise<readonly ProcessInfo[]>
  /** Another view of a program that is kept, also when it has ended. Any number may be held at once; leaving one ends nothing. */
  attach(id: string, process: ProcessName, options?: AttachOptions): Promise<PlatformProcess>
}
