/** What a command wrote over a folder that it saw through an overlay, kept until somebody takes it over or drops it. */
import * as z from 'zod'
import { deferred } from './deferred.js'
import type { CallOptions } from './platform.js'

/** One thing in the layer over a mount; `path` is below the mount's target. Paths and targets of links here hold any bytes: see path-text. */
export type Written =
  | { readonly type: 'file'; readonly path: string; readonly mode: number; readonly size: number }
  /** `hides`: what the source has there is not seen beneath it. */
  | { readonly type: 'folder'; readonly path: string; readonly mode: number; readonly hides: boolean }
  | { readonly type: 'link'; readonly path: string; readonly target: string }
  | { readonly type: 'removed'; readonly path: string }
  /** What no host takes over: a FIFO, a socket, a device, a path that cannot be opened. */
  | { readonly type: 'other'; readonly path: string; readonly why: string }

export interface PlatformChanges {
  /** What was written over the mount with mode `overlay` at `target`, folders before what is in them. */
  written(id: string, target: string, options?: CallOptions): Promise<readonly Written[]>
}

const modeSchema = z.int().min(0).max(0o7777)

/** What is at a path: enough to tell whether it is still the same. */
const pathStateSchema = deferred(() =>
  z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('none') }),
    z.strictObject({ type: z.literal('file'), mode: modeSchema, size: z.int().min(0), hash: z.string(), mtimeMs: z.number().optional() }),
    z.strictObject({ type: z.literal('folder'), mode: modeSchema, mtimeMs: z.number().optional() }),
    z.strictObject({ type: z.literal('link'), target: z.string(), mtimeMs: z.number().optional() }),
    z.strictObject({ type: z.literal('other'), mtimeMs: z.number().optional() }),
  ]),
)

export type PathState = z.output<typeof pathStateSchema>

const pendingChangeSchema = deferred(() =>
  z.strictObject({
    /** Below the folder. */
    path: z.string().min(1),
    before: pathStateSchema,
    after: pathStateSchema,
    /** It was changed in the folder itself while the command ran, which cannot have known. */
    isStale: z.boolean().optional(),
  }),
)

export type PendingChange = z.output<typeof pendingChangeSchema>

export const changeSetSchema = deferred(() =>
  z.strictObject({
    version: z.literal(1),
    id: z.string().regex(/^[a-z0-9]{20}$/),
    /** Absolute, without links. */
    folder: z.string().startsWith('/'),
    createdAt: z.string(),
    command: z.array(z.string()),
    /** Sorted by path. */
    changes: z.array(pendingChangeSchema),
    /** What was made and cannot be taken over, and why. */
    skipped: z.array(z.strictObject({ path: z.string(), why: z.string() })),
  }),
)

export type ChangeSet = z.output<typeof changeSetSchema>

/** How what a command wrote becomes a change set. */
export interface ChangeTaking {
  readonly folder: string
  readonly command: readonly string[]
  /** From when on changes of the folder itself went unseen. */
  readonly startedMs: number
  readonly written: readonly Written[]
  content(path: string): AsyncIterable<Uint8Array>
  /** More content than that was never written: it is an illusion of holes. */
  readonly mostBytes: number
  readonly signal?: AbortSignal
}

export interface AppliedChanges {
  readonly applied: readonly string[]
  /** Still pending in this change set. */
  readonly left: number
}

/** The change sets of this machine's user. */
export interface ChangeStore {
  /** Undefined when nothing was changed. */
  take(taking: ChangeTaking): Promise<ChangeSet | undefined>
  /** Newest first; of one folder when given. */
  list(folder?: string): Promise<readonly ChangeSet[]>
  /** By its id or the beginning of it. Throws SandboxError('not-found'). */
  find(id: string): Promise<ChangeSet>
  /** The content of a file as it would be, at most so much of it. */
  newContent(set: ChangeSet, change: PendingChange, mostBytes: number): Promise<Uint8Array>
  /** The same of what is in the folder; undefined when it is not what it was. */
  oldContent(set: ChangeSet, change: PendingChange, mostBytes: number): Promise<Uint8Array | undefined>
  /** All, or those named and beneath; all or nothing as far as the file system allows. Throws SandboxError('conflict') naming what changed underneath. */
  apply(set: ChangeSet, paths?: readonly string[]): Promise<AppliedChanges>
  drop(set: ChangeSet): Promise<void>
}
