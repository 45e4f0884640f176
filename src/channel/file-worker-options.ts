/** What is asked of a file worker, and what of its replies is more than one of them. */
import type { WorkerEntry, WorkerMatch } from './file-worker-replies.js'

export type Path = Uint8Array

export interface OpenedFile {
  readonly entry: WorkerEntry
  /** Not reading it holds the worker back; leaving it early ends the worker. */
  readonly bytes: AsyncIterable<Uint8Array>
}

export interface WorkerWriteOptions {
  readonly append?: boolean
  readonly atomic?: boolean
  readonly exclusive?: boolean
  readonly mode?: number
}

export interface WorkerListOptions {
  /** Everything beneath unless given; 0 is the folder itself. */
  readonly depth?: number
  readonly hidden?: boolean
  readonly hash?: boolean
  readonly oneFilesystem?: boolean
  /** The path is relative to the layers folder. */
  readonly inLayers?: boolean
}

export interface WorkerSearchOptions {
  readonly pattern: Uint8Array
  readonly most: number
  readonly regex?: boolean
  readonly ignoreCase?: boolean
  readonly hidden?: boolean
}

export interface WorkerSearchResult {
  readonly matches: readonly WorkerMatch[]
  readonly skipped: number
  readonly truncated: boolean
}
