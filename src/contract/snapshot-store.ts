/** What a snapshot is made of, and where it is kept: known to the engine, which packs and restores, and to the store, which keeps. */
import type { SnapshotInfo } from './snapshots.js'

/** `removed`: what lies beneath an overlay, or was given, and is not to be seen. */
export const manifestTypes = ['file', 'folder', 'link', 'fifo', 'removed'] as const
export type ManifestType = (typeof manifestTypes)[number]

/** One thing that a snapshot holds. Two entries are the same exactly when all of this is: times do not count. */
export interface ManifestEntry {
  /** The bytes of its path, one character each (Latin-1), without a slash in front: `workspace/notes.txt`. */
  readonly path: string
  readonly type: ManifestType
  /** Permission bits and the sticky bit. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  /** Of a file's content or a link's target; otherwise 0. */
  readonly size: number
  /** SHA-256 of a file's content, hexadecimal; otherwise empty. */
  readonly hash: string
  /** Of a link, as bytes like `path`; otherwise empty. */
  readonly target: string
  /** The path under which the same file came before: a hard link; otherwise empty. */
  readonly sameAs: string
  /** Of a folder in an overlay: nothing that lies beneath it is to be seen in it. */
  readonly hides?: true
}

/** What it takes to hold what a snapshot holds. */
export interface SnapshotNeeds {
  /** Files rounded up to whole pages. */
  readonly diskBytes: number
  readonly largestFileBytes: number
  readonly entries: number
}

export interface StoredSnapshot {
  readonly info: SnapshotInfo
  readonly needs: SnapshotNeeds
  /** Rejects when its manifest is not what the id says, or says something else than `info`. */
  check(): Promise<void>
  /** In the order of the archive. Rejects when they are not what the id says. */
  entries(): AsyncIterable<ManifestEntry>
  /** A tar archive (pax). Rejects at its end when it is not what was kept. */
  archive(): AsyncIterable<Uint8Array>
}

/** A snapshot that is being written: nobody else sees it. */
export interface SnapshotDraft {
  /** Bytes of the archive; resolves when there is room for more. */
  write(bytes: Uint8Array): Promise<void>
  /** In the order of the archive. */
  add(entry: ManifestEntry): Promise<void>
  /** Nothing is written after this. It can be read, by whoever holds it, until it is kept or discarded. */
  seal(): Promise<StoredSnapshot>
  /** Makes a sealed one everybody's. */
  keep(name: string | undefined): Promise<SnapshotInfo>
  /** Quiet when it was kept, which it does not undo. */
  discard(): Promise<void>
}

/** All methods reject with SandboxError: 'unavailable' when the disk is full or not ours, 'broken' naming an object that is damaged. */
export interface SnapshotStore {
  /** `templateId`: of a built template, by its content. */
  draft(template: string, templateId?: string): Promise<SnapshotDraft>
  /** By id or by name. */
  find(reference: string): Promise<StoredSnapshot | undefined>
  list(): Promise<readonly SnapshotInfo[]>
  remove(reference: string): Promise<boolean>
}
