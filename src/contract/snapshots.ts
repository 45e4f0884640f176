/** Everything a sandbox has written, kept: immutable, named by its content. */
import type { EntryType } from './files.js'
import type { CallOptions, SandboxInfo } from './platform.js'

export interface SnapshotInfo {
  /** `sha256:` and 64 hexadecimal digits, of what it holds. */
  readonly id: string
  readonly name?: string
  readonly template: string
  readonly createdAt: string
  readonly bytes: number
  readonly entries: number
}

export type ChangeType = 'added' | 'changed' | 'removed'

export interface Change {
  readonly type: ChangeType
  /** Absolute, as the cell sees it. */
  readonly path: string
  readonly entry: EntryType
  /** Of its content now; of what was removed, before. */
  readonly size: number
  readonly mode: number
}

export interface SinceOptions extends CallOptions {
  /** A snapshot's id or name; the template when not given. */
  readonly since?: string
}

export interface PlatformSnapshots {
  /** A name that another snapshot has moves to this one. */
  take(id: string, options?: CallOptions & { readonly name?: string }): Promise<SnapshotInfo>
  list(options?: CallOptions): Promise<readonly SnapshotInfo[]>
  /** By id, or by name. False when there was none. */
  remove(snapshot: string, options?: CallOptions): Promise<boolean>
  /** Sorted by path. */
  diff(id: string, options?: SinceOptions): Promise<readonly Change[]>
  /** What was added and changed, as a tar archive; what was removed is there as `.wh.NAME`, as in an OCI layer. */
  export(id: string, options?: SinceOptions): Promise<AsyncIterable<Uint8Array>>
  /** New sandboxes of the same spec that begin with these files. All or none. */
  fork(id: string, count: number, options?: CallOptions): Promise<readonly SandboxInfo[]>
}
