import * as z from 'zod'
import type { AuditSettings } from './audit.js'
import { auditSettingsSchema } from './audit.js'
import { deferred } from './deferred.js'
import type { SharedBudget } from './egress.js'
import type { PlatformEvents } from './events.js'
import type { CallOptions, Platform, SandboxFilter, SandboxInfo } from './platform.js'
import { policySchema, presetNames } from './policy.js'
import { bytesSchema } from './quantities.js'
import { labelSchema } from './spec.js'

/** Who asks, what they may do, and how much of the machine is theirs. Keys belong to tenants; sandboxes belong to the tenant whose key made them. */

/** Chosen by the operator; part of paths and labels, so nothing else is accepted anywhere. */
export const tenantIdSchema = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/, 'must be a tenant id: lower-case letters, digits and hyphens, at most 40')

/** Whose everything is where nobody made tenants. */
export const defaultTenant = 'default'

/**
 * `read`: what is there and what it prints; `run`: also make, use and close sandboxes; `admin`: also keys, tenants and the audit trail, of all tenants.
 * Each includes those before it.
 */
export const scopes = ['read', 'run', 'admin'] as const
export type Scope = (typeof scopes)[number]

/** The one judge of what a key is for: at the door, and again before each act. */
export function includesScope(given: readonly Scope[], wanted: Scope): boolean {
  return given.some((scope) => scopes.indexOf(scope) >= scopes.indexOf(wanted))
}

/** Public: shown in lists and in the audit trail. */
export const keyIdSchema = z.string().regex(/^[a-z0-9]{12}$/, 'must be a key id: 12 lower-case letters and digits')

/** Who does something, once that is proven. */
export interface Actor {
  /** A key's id; `local` for whoever may open the state folder of the machine. */
  readonly key: string
  readonly tenant: string
  readonly scopes: readonly Scope[]
}

export const keyRequestSchema = deferred(() =>
  z.strictObject({
    tenant: tenantIdSchema.default(defaultTenant),
    scopes: z.array(z.enum(scopes)).min(1, 'must not be empty').max(scopes.length).default(['run']),
    /** From when on it is not accepted any more. Not given: never. */
    expires: z.iso.datetime().optional(),
    name: labelSchema.optional(),
  }),
)

export type KeyRequest = z.input<typeof keyRequestSchema>

export interface KeyInfo {
  readonly id: string
  readonly tenant: string
  readonly scopes: readonly Scope[]
  readonly name?: string
  readonly createdAt: string
  readonly expiresAt?: string
  readonly revokedAt?: string
  /** To the minute. Not given: never. */
  readonly lastUsedAt?: string
}

export interface NewKey extends KeyInfo {
  /** Shown this once: what is kept is its hash. */
  readonly secret: string
}

/** Where a request came from: the address of the other side, or nothing for a socket of this machine. */
export interface AuthenticateOptions {
  readonly source?: string
}

export interface KeyFilter {
  readonly tenant?: string
  /** With those that were revoked or are over; false unless given. */
  readonly all?: boolean
}

/** Every list is paged: `next`, where there is more, is handed back as it is. */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly next?: string
}

export interface PageRequest {
  readonly cursor?: string
  /** At most so many; 100 when not given, 1000 at most. */
  readonly limit?: number
}

export interface Keys {
  /** Throws SandboxError('not-found') for a tenant that is not there. */
  create(request: KeyRequest, by: Actor): Promise<NewKey>
  /**
   * Throws SandboxError('unauthorized'), the same whatever is wrong with what was given; once a source was wrong too often `busy`, with when to try again,
   * whatever it gives.
   */
  authenticate(secret: unknown, options?: AuthenticateOptions): Promise<Actor>
  /** By creation. */
  list(filter?: KeyFilter, page?: PageRequest): Promise<Page<KeyInfo>>
  /** Whether a key of this id would be accepted now: what was signed with it is as good as it is. */
  isAccepted(id: string): Promise<boolean>
  /** From the next request on, in every process. False when there was none that could be used. */
  revoke(id: string, by: Actor): Promise<boolean>
}

const countSchema = z.int().min(0).max(1_000_000)
const sizeSchema = bytesSchema({ min: 0, max: 2 ** 50, example: '8g' })

const quotaSchemas = {
  sandboxes: countSchema.describe('At once, those that a pool keeps ready included.'),
  cpus: z.number().min(0).max(1_000_000).describe('The limits of all its sandboxes together.'),
  memory: sizeSchema.describe('The limits of all its sandboxes together.'),
  disk: sizeSchema.describe('The limits of all its sandboxes together.'),
  createsPerMinute: countSchema.describe('Sandboxes made within any 60 seconds, those of single runs included.'),
  egressPerDay: sizeSchema.describe('Bytes through the network, both directions, from midnight to midnight UTC.'),
}

/** What a tenant may have; a quota that is left out bounds nothing. */
export const quotasSchema = deferred(() => z.strictObject(quotaSchemas).partial())

/** Null takes one away; what is left out stays. */
const quotaChangesSchema = deferred(() =>
  z
    .strictObject({
      sandboxes: quotaSchemas.sandboxes.nullable(),
      cpus: quotaSchemas.cpus.nullable(),
      memory: quotaSchemas.memory.nullable(),
      disk: quotaSchemas.disk.nullable(),
      createsPerMinute: quotaSchemas.createsPerMinute.nullable(),
      egressPerDay: quotaSchemas.egressPerDay.nullable(),
    })
    .partial(),
)

export type QuotaLimits = z.output<typeof quotasSchema>

export const quotaNames = ['sandboxes', 'cpus', 'memory', 'disk', 'createsPerMinute', 'egressPerDay'] as const
export type QuotaName = (typeof quotaNames)[number]

export const tenantInputSchema = deferred(() =>
  z.strictObject({
    id: tenantIdSchema,
    name: labelSchema.optional(),
    /** Beside the operator's: both hold. */
    policy: z.union([z.enum(presetNames), policySchema]).optional(),
    quotas: quotasSchema.default({}),
    audit: auditSettingsSchema.optional(),
  }),
)

export type TenantInput = z.input<typeof tenantInputSchema>

/** What is given replaces what was there; null takes it away. */
export const tenantChangeSchema = deferred(() =>
  z.strictObject({
    name: labelSchema.nullable().optional(),
    policy: z
      .union([z.enum(presetNames), policySchema])
      .nullable()
      .optional(),
    quotas: quotaChangesSchema.optional(),
    audit: auditSettingsSchema.nullable().optional(),
  }),
)

export type TenantChange = z.input<typeof tenantChangeSchema>

export interface TenantInfo {
  readonly id: string
  readonly name?: string
  /** As it was written. */
  readonly policy?: z.input<typeof policySchema> | (typeof presetNames)[number]
  /** In base units: bytes, counts. */
  readonly quotas: QuotaLimits
  readonly audit: AuditSettings
  readonly createdAt: string
}

export interface QuotaUse {
  readonly used: number
  /** Null: nothing bounds it. */
  readonly limit: number | null
}

export type TenantUsage = Readonly<Record<QuotaName, QuotaUse>>

export interface Tenants {
  create(input: TenantInput, by: Actor): Promise<TenantInfo>
  /** Throws SandboxError('not-found'). */
  get(id: string): Promise<TenantInfo>
  /** By id. */
  list(page?: PageRequest): Promise<Page<TenantInfo>>
  /** For what is made from now on; what lives keeps what it was given. */
  update(id: string, change: TenantChange, by: Actor): Promise<TenantInfo>
  /** With its keys. Throws SandboxError('conflict') while it has sandboxes here, and for `default`. False when there was none. */
  remove(id: string, by: Actor): Promise<boolean>
}

/** How much one sandbox, or several, take of a tenant's quotas. */
export interface QuotaRequest {
  /** 1 when not given. */
  readonly sandboxes?: number
  readonly cpus: number
  readonly memory: number
  readonly disk: number
  /** Whether it may send anything: refused once the day's bytes are spent. */
  readonly hasNetwork?: boolean
  /** How many count as made now; as many as there are sandboxes when not given. */
  readonly creates?: number
}

export interface QuotaLease {
  /** Takes another amount instead; throws as `reserve` does, and then holds what it held. */
  change(request: QuotaRequest): Promise<void>
  /** One for each of its sandboxes, instead of this one. */
  split(): readonly QuotaLease[]
  /** At the end of what it was for. Quiet the second time. */
  release(): void
}

export interface Quotas {
  /**
   * All of it or nothing, however many ask at once. Throws SandboxError('quota') whose `details` are `{ quota, used, limit, asked }`, with `retryAfterMs` where
   * time alone helps.
   */
  reserve(tenant: string, request: QuotaRequest): Promise<QuotaLease>
  /** What may go through the networks of its sandboxes today: counted as it passes. */
  egressOf(tenant: string): SharedBudget
  usage(tenant: string): Promise<TenantUsage>
}

export interface HouseFilter extends SandboxFilter {
  readonly tenant?: string
  readonly sandbox?: string
}

/**
 * The platforms of one machine, one a tenant, so that nothing is shared between tenants that could be mistaken: not a sandbox, not a waiting cell, not the name of a
 * snapshot. What one tenant asks of another's answers as what never was.
 */
export interface House extends AsyncDisposable {
  /**
   * The platform as this actor has it: its scopes and its tenant's policy and quotas hold, and each act is in the audit trail before its effect. An admin may name
   * another tenant. Throws SandboxError('forbidden'), and 'not-found' for a tenant that is not there. Cheap: one for each request.
   */
  platformFor(actor: Actor, options?: { readonly tenant?: string; readonly request?: string }): Promise<Platform>
  /** Of all tenants, by creation; for those who may see them. */
  list(filter?: HouseFilter, options?: CallOptions): AsyncIterable<SandboxInfo>
  /** Of all tenants, unless one is named; for those who may see them. */
  readonly events: PlatformEvents
}
