/** Everything a sandbox has written, kept: immutable, named by its content. */
import * as z from 'zod'
import type { EntryType } from './files.js'
import type { CallOptions, SandboxInfo } from './platform.js'

const idPattern = /^sha256:[0-9a-f]{64}$/

/** Whole ids and what could be taken for one, so that a name never hides a snapshot or points at another than it seems to. */
const likeAnId = /^(?:sha256:.*|[0-9a-f]{64})$/i

export const snapshotIdSchema = z.string().regex(idPattern, "must be a snapshot's id: 'sha256:' and 64 hexadecimal digits")

export const snapshotNameSchema = z
  .string()
  .min(1)
  .max(200)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused here
  .regex(/^[^\u0000-\u001f\u007f]*$/, 'must not contain control characters')
  .refine((name) => !likeAnId.test(name), 'looks like an id; choose another name')

/** An id, or a name. */
export const snapshotReferenceSchema = z.union([snapshotIdSchema, snapshotNameSchema], { error: "must be a snapshot's id or name" })

export interface SnapshotInfo {
  /** `sha256:` and 64 hexadecimal digits, of what it holds: names, contents, owners and modes, but no times. */
  readonly id: string
  readonly name?: string
  readonly template: string
  /** Of a built template: what it lies over, by content. */
  readonly templateId?: string
  /** When this content was first kept. */
  readonly createdAt: string
  /** Of all its files together. */
  readonly bytes: number
  readonly entries: number
}

export type ChangeType = 'added' | 'changed' | 'removed'

export interface Change {
  readonly type: ChangeType
  /** Absolute, as the cell sees it; what is not UTF-8 is replaced by U+FFFD. */
  readonly path: string
  /** Set exactly when the path is not UTF-8. */
  readonly pathBytes?: Uint8Array
  /** What it is now; of what was removed, what it was. */
  readonly entry: EntryType
  /** Of a file's content or a link's target now, otherwise 0; of what was removed, before. */
  readonly size: number
  readonly mode: number
}

export interface SinceOptions extends CallOptions {
  /** A snapshot's id or name; the template when not given. */
  readonly since?: string
}

export interface TakeOptions extends CallOptions {
  /** A name that another snapshot has moves to this one. */
  readonly name?: string
}

export interface ForkOptions extends CallOptions {
  /** Of the new sandboxes, instead of the origin's. */
  readonly name?: string
  readonly metadata?: Readonly<Record<string, string>>
}

export interface PlatformSnapshots {
  /** Programs stand still meanwhile. Where nothing can stop them, a file that changes while it is read is `conflict`, and nothing is kept. */
  take(id: string, options?: TakeOptions): Promise<SnapshotInfo>
  /** One for each name, and those without one; the oldest first. */
  list(options?: CallOptions): Promise<readonly SnapshotInfo[]>
  /** By id, or by name; with all its names. False when there was none. */
  remove(snapshot: string, options?: CallOptions): Promise<boolean>
  /** Sorted by path. */
  diff(id: string, options?: SinceOptions): Promise<readonly Change[]>
  /** What was added and changed, as a tar archive; what was removed is there as `.wh.NAME`, as in an OCI layer. Read by one consumer. */
  export(id: string, options?: SinceOptions): Promise<AsyncIterable<Uint8Array>>
  /** New sandboxes of the same spec that begin with these files; their programs are not copied. All or none. */
  fork(id: string, count: number, options?: ForkOptions): Promise<readonly SandboxInfo[]>
}
