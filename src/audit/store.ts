import type { AuditCheckpoint, AuditFilter, AuditHead } from '../contract/audit.js'
import type { Link } from './chain.js'

/** A record as it is kept: its text, and what it is found by. */
export interface StoredRecord {
  readonly number: number
  readonly text: string
}

export interface StoreQuery {
  readonly filter: AuditFilter
  readonly order: 'newest' | 'oldest'
  /** Exclusive; in the order asked for. */
  readonly after: number | undefined
  readonly limit: number
}

/** What a chain ends with, as it is found: nothing of it is judged. */
export interface StoredEnd {
  readonly newest: StoredRecord | undefined
  readonly head: unknown
  readonly checkpoint: unknown
}

export interface Batch {
  readonly links: readonly Link[]
  readonly head: AuditHead
}

/** Where the chain is kept. What it holds is judged by others: it adds, finds and takes away, and knows no hashes. Another database takes its place by doing the same. */
export interface AuditStore {
  /**
   * Adds what `make` makes of the newest record there is, and the head that tells of it, all or nothing: nobody else adds anything between the two. On the disk when this
   * resolves. Throws SandboxError('full') when there is no room, and then nothing was added. `make` is given nothing when nobody has written since what was added here last.
   * `onWritten` is called when it was added and would survive this process, though perhaps not the machine.
   */
  append(make: (end: StoredEnd | undefined) => Batch, onWritten?: () => void): Promise<void>
  find(query: StoreQuery): readonly StoredRecord[]
  end(): StoredEnd
  /** The newest that was written before a time. */
  lastBefore(time: string): StoredRecord | undefined
  /** Takes away everything up to a record, and keeps what tells of it. On the disk when this resolves. */
  prune(checkpoint: AuditCheckpoint): Promise<number>
  /** Where what each row is found by is not what its text says; undefined when nowhere. */
  misfiled(rows: readonly StoredRecord[]): number | undefined
  close(): void
}
