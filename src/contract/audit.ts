import * as z from 'zod'
import { deferred } from './deferred.js'
import type { Json } from './posture.js'
import { signatureSchema } from './receipt.js'

/**
 * The audit trail: what was done, by whom and with what outcome, in a chain in which each record names the one before it by hash. An act has one record before its effect,
 * and another (`of` names the first) when it is over. The newest record's hash is signed with the key that signs receipts.
 */

export const auditActs = [
  'sandbox.create',
  'sandbox.close',
  'sandbox.limit',
  'sandbox.pause',
  'sandbox.resume',
  'sandbox.lifetime',
  /** It is over, whoever ended it; told by the engine. */
  'sandbox.end',
  /** It was not closed when an earlier process ended. */
  'sandbox.lost',
  'run.start',
  'run.signal',
  'run.kill',
  'run.attach',
  'code.execute',
  'code.context',
  'file.write',
  'file.mkdir',
  'file.move',
  'file.copy',
  'file.remove',
  'file.symlink',
  'file.chmod',
  'file.unpack',
  'network.update',
  'network.decision',
  'port.forward',
  'pool.create',
  'pool.close',
  'snapshot.take',
  'snapshot.remove',
  'snapshot.fork',
  'snapshot.export',
  'receipt.issue',
  'url.sign',
  'key.use',
  'key.refuse',
  'key.create',
  'key.revoke',
  'tenant.create',
  'tenant.update',
  'tenant.remove',
  /** A tenant has used up what it may for a while. */
  'quota.spend',
  'anomaly',
  'audit.prune',
  'audit.export',
  'server.start',
  'server.stop',
] as const
export type AuditAct = (typeof auditActs)[number]

/** How much of what is run is written down. Secrets of known forms are replaced in any case. */
export const auditSettingsSchema = deferred(() =>
  z.strictObject({
    code: z.enum(['full', 'hash']).default('full').describe('Commands and code, up to 64 KiB of each; or only their SHA-256.'),
    env: z.enum(['names', 'values']).default('names').describe('Of variables of the environment.'),
    receipts: z
      .enum(['asked', 'always'])
      .default('asked')
      .describe('Whether the hash of a receipt is written down when somebody asks for one, or also whenever a sandbox is closed by a call.'),
  }),
)

export type AuditSettings = z.output<typeof auditSettingsSchema>

const jsonSchema: z.ZodType<Json> = z.json()
const hashSchema = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits')
const textSchema = z.string().max(1000)

/** How an act ended: `ok`, or the code of an error with its message. */
const auditOutcomeSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('ok') }),
  z.strictObject({ kind: z.literal('error'), code: textSchema, message: z.string().max(4000) }),
])

export const auditEntrySchema = z.strictObject({
  act: z.enum(auditActs),
  /** A key's id; `local` for the machine's own user, `system` for what nobody asked for. */
  actor: textSchema,
  tenant: textSchema.optional(),
  agent: textSchema.optional(),
  sandbox: textSchema.optional(),
  /** What all records of one request have in common. */
  request: textSchema.optional(),
  /** Of the record that told of the act before its effect. */
  of: z.int().min(1).optional(),
  outcome: auditOutcomeSchema.optional(),
  /** SHA-256 of the canonical form of a receipt. */
  receipt: hashSchema.optional(),
  /** What else there is to say; at most 256 KiB. */
  details: z.record(z.string(), jsonSchema).optional(),
})

export const auditRecordSchema = deferred(() =>
  auditEntrySchema.extend({
    /** From 1, without gaps. */
    number: z.int().min(1),
    at: z.iso.datetime(),
    /** The hash of the record before it; 64 zeros of the first. */
    previous: hashSchema,
    /** SHA-256 of the canonical form (RFC 8785) of all the rest. */
    hash: hashSchema,
  }),
)

export type AuditEntry = z.output<typeof auditEntrySchema>
export type AuditRecord = z.output<typeof auditRecordSchema>

/** The newest record, signed: whoever keeps one can tell later whether anything up to it was changed or taken away. */
export const auditHeadSchema = deferred(() =>
  z.strictObject({
    schema: z.literal('glovebox-audit-head/1'),
    number: z.int().min(0),
    hash: hashSchema,
    at: z.iso.datetime(),
    signature: signatureSchema,
  }),
)

/** What was pruned, signed: the chain goes on where it says. */
export const auditCheckpointSchema = deferred(() =>
  z.strictObject({
    schema: z.literal('glovebox-audit-checkpoint/1'),
    /** The last record that was taken away, and its hash. */
    number: z.int().min(1),
    hash: hashSchema,
    at: z.iso.datetime(),
    signature: signatureSchema,
  }),
)

export type AuditHead = z.output<typeof auditHeadSchema>
export type AuditCheckpoint = z.output<typeof auditCheckpointSchema>

export interface AuditFilter {
  readonly tenant?: string
  readonly agent?: string
  readonly sandbox?: string
  readonly actor?: string
  readonly act?: AuditAct
  readonly request?: string
  /** ISO 8601; of the time of writing, inclusive. */
  readonly since?: string
  /** Exclusive. */
  readonly until?: string
}

export interface AuditPageRequest {
  /** `next` of the page before. */
  readonly cursor?: string
  /** At most so many; 100 when not given, 1000 at most. */
  readonly limit?: number
  /** `newest` unless given. */
  readonly from?: 'newest' | 'oldest'
}

export interface AuditPage {
  readonly items: readonly AuditRecord[]
  readonly next?: string
}

export type AuditVerification =
  | {
      readonly valid: true
      /** How many records were looked at. */
      readonly records: number
      readonly head: AuditHead
      /** What is known to have been pruned. */
      readonly checkpoint?: AuditCheckpoint
      /** Whether it was signed by a key that was handed in. */
      readonly trusted: boolean
    }
  /** The number of the first record that is not as it was written, or is missing. */
  | { readonly valid: false; readonly number: number; readonly why: string }

/** A record that is on the disk. */
export interface Appended {
  readonly number: number
  readonly hash: string
  /** As it was written. */
  readonly entry: AuditEntry
}

export interface AuditTrail extends AsyncDisposable {
  /**
   * Before the act: when this resolves, the record is on the disk. Throws SandboxError('full') when it cannot be, and then the act must not be done.
   * Whatever is appended while one is being written is written together. `onWritten` is called as soon as the record would survive this process, though perhaps not the machine.
   */
  append(entry: AuditEntry, options?: { readonly onWritten?: () => void }): Promise<Appended>
  /** What happened already, or must not be refused: kept until there is room, and nothing new is taken meanwhile. */
  tell(entry: AuditEntry): Promise<Appended>
  /** How an act ended; more may be said of it than before. Never refused, as what is told is not. `mayWait`: nobody waits for it, so it goes with the next, a moment later at most. */
  finish(begun: Appended, ending: Pick<AuditEntry, 'outcome' | 'receipt' | 'details' | 'sandbox'>, options?: { readonly mayWait?: boolean }): Promise<Appended>
  list(filter?: AuditFilter, page?: AuditPageRequest): Promise<AuditPage>
  /** Those that are written from now on, also by other processes; the latest `last` before them. */
  tail(filter?: AuditFilter, options?: { readonly signal?: AbortSignal; readonly last?: number }): AsyncIterable<AuditRecord>
  head(): Promise<AuditHead>
  /** `anchor`: a head that was kept elsewhere, which must be in the chain. */
  verify(options?: { readonly anchor?: AuditHead; readonly signal?: AbortSignal }): Promise<AuditVerification>
  /** Lines of JSON: `{"checkpoint":…}` where something was pruned, `{"record":…}` each, `{"head":…}` last. */
  export(options?: { readonly signal?: AbortSignal }): AsyncIterable<string>
  /** Takes away what was written before, all or none of a moment; the chain stays provable. Resolves to how many there were. */
  prune(before: string, by: { readonly actor: string }): Promise<number>
}
