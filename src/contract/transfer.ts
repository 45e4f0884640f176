/** Files and folders of the machine that this process runs on, as they travel into a sandbox and out of one. */
import type { CallOptions } from './platform.js'

/** Something that did not travel: a socket, a FIFO, a device, a link that would lead out. */
export interface Skipped {
  /** Below the folder that travels; what is not UTF-8 is replaced by U+FFFD. */
  readonly path: string
  readonly why: string
}

/** Held open until `bytes` ends or it is disposed of. */
export interface LocalSource extends AsyncDisposable {
  readonly type: 'file' | 'folder'
  /** Permission bits, of a file. */
  readonly mode: number
  /** About what `bytes` will yield. */
  readonly totalBytes: number
  readonly skipped: readonly Skipped[]
  /** The content of a file; a folder as a tar archive. Once. A piece is good until the next one is asked for. */
  readonly bytes: AsyncIterable<Uint8Array>
}

export interface ReceiveOptions extends CallOptions {
  /** Replace files that are there. Without it one that is there is a conflict, and nothing is changed. */
  readonly overwrite?: boolean
  /** At most so much content; a guest may have made more than there is room for. */
  readonly mostBytes?: number
  /** At most so many files, folders and links. */
  readonly mostEntries?: number
}

export interface Received {
  readonly entries: number
  readonly bytes: number
  readonly skipped: readonly Skipped[]
}

/** The local disk. What comes from a sandbox is trusted in nothing: neither its names nor its links nor its modes. */
export interface LocalFiles {
  /** Follows no link, be it the path itself; on the way to it only one that nobody but the system's administrator can have put there. */
  send(path: string, options?: CallOptions): Promise<LocalSource>
  /** Takes its place when it is whole; after a failure everything is as it was. */
  receiveFile(path: string, content: AsyncIterable<Uint8Array>, options?: ReceiveOptions & { readonly mode?: number }): Promise<Received>
  /** The same for a folder; one that is there is kept and filled. */
  receiveFolder(path: string, archive: AsyncIterable<Uint8Array>, options?: ReceiveOptions): Promise<Received>
}
