/** How snapshots reach into a cell: what the file worker does for them, and nothing of how. */
import type { SandboxInfo } from '../contract/platform.js'
import type { PlannedSandbox } from '../policy/apply.js'
import type { KeptLayer, LayeredCell } from './snapshots-layers.js'

/** Text that is bytes has one character for each (Latin-1). */
export interface ListedEntry {
  /** Below the folder that was listed. */
  readonly path: string
  readonly type: 'file' | 'folder' | 'link' | 'fifo' | 'socket' | 'device'
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly size: number
  /** Hexadecimal; of files, when hashes were asked for. */
  readonly hash: string
  readonly target: string
  /** Which file it is, so that other names of it are recognised. */
  readonly file: string
  /** Differs whenever the content or the rest of it was touched. */
  readonly stamp: string
  /** In an overlay: something beneath was removed here, or nothing beneath is seen in this folder. */
  readonly mark?: 'removed' | 'opaque'
}

export interface LayerAccess {
  /** Everything that was written there; links are not followed. */
  list(layer: KeptLayer, options: { readonly hashes: boolean }): AsyncIterable<ListedEntry>
  /** The same as a tar archive, sorted; of an overlay with marks on what was removed, and on folders that hide what lies beneath. */
  pack(layer: KeptLayer): AsyncIterable<Uint8Array>
  /** With owners; marks are applied. Into what programs see. */
  unpack(layer: KeptLayer, archive: AsyncIterable<Uint8Array>): Promise<void>
}

/** A sandbox as snapshots see it. */
export interface LayeredSandbox {
  readonly info: SandboxInfo
  /** What another of the same kind is made from. */
  readonly planned: PlannedSandbox
  readonly cell: LayeredCell
  /** Reaches every file that the sandbox's programs can make. Aborting ends what is under way. */
  access(signal: AbortSignal | undefined): LayerAccess
}

/** A sandbox that can be read as it is at one moment. */
export interface ReadableSandbox {
  /** Done while nothing else of it moves, neither programs nor other operations on files, where that can be had. */
  whileStill<T>(signal: AbortSignal | undefined, act: (reading: Reading) => Promise<T>): Promise<T>
}

export interface Reading {
  /** With the cell that it has by then. */
  readonly sandbox: LayeredSandbox
  /** Of no use afterwards. */
  readonly access: LayerAccess
}
