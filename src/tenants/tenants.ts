import { type AuditTrail, auditSettingsSchema } from '../contract/audit.js'
import { SandboxError } from '../contract/errors.js'
import type { Json } from '../contract/posture.js'
import {
  type Actor,
  defaultTenant,
  type Page,
  type PageRequest,
  type QuotaLimits,
  type TenantChange,
  type TenantInfo,
  type TenantInput,
  type Tenants,
  tenantChangeSchema,
  tenantIdSchema,
  tenantInputSchema,
} from '../contract/tenants.js'
import { stated } from '../policy/ceiling.js'
import { parsePolicy } from '../policy/policy-file.js'
import { parseObject, parseWith } from '../policy/refusal.js'
import { acting } from './acting.js'
import { pageOf, parsePage } from './pages.js'
import type { TenantStore } from './store.js'

export interface TenantRegisterOptions {
  readonly store: TenantStore
  readonly trail: AuditTrail
  /** Sandboxes of a tenant that are there now, as far as this process knows. */
  readonly sandboxesOf?: (tenant: string) => number
}

export class TenantRegister implements Tenants {
  readonly #options: TenantRegisterOptions

  constructor(options: TenantRegisterOptions) {
    this.#options = options
  }

  /** Whose everything is where nobody made tenants. */
  async makeDefault(): Promise<void> {
    if (this.#options.store.tenant(defaultTenant)) return
    await this.#options.store.addTenant({ id: defaultTenant, quotas: {}, audit: auditSettingsSchema.parse({}), createdAt: new Date().toISOString() })
  }

  async create(input: TenantInput, by: Actor): Promise<TenantInfo> {
    const { id, name, policy, quotas, audit } = parseObject(tenantInputSchema, input, { what: 'tenant', objects: ['quotas', 'audit'] })
    const written = policyAsWritten(input.policy)
    const tenant: TenantInfo = {
      id,
      ...(name !== undefined && { name }),
      ...(policy !== undefined && written !== undefined && { policy: written }),
      quotas: stated(quotas),
      audit: audit ?? auditSettingsSchema.parse({}),
      createdAt: new Date().toISOString(),
    }
    const { store, trail } = this.#options
    return acting(trail, { act: 'tenant.create', actor: by.key, tenant: id, details: detailsOf(tenant) }, async () => {
      if (!(await store.addTenant(tenant))) throw new SandboxError('conflict', `there is a tenant ${id} already`, { hint: `glovebox tenants set ${id}` })
      return tenant
    })
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- another store would be waited for
  async get(id: string): Promise<TenantInfo> {
    const found = this.#options.store.tenant(parseWith(tenantIdSchema, id, 'id'))
    if (!found) throw missing(id)
    return found
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- as above
  async list(page: PageRequest = {}): Promise<Page<TenantInfo>> {
    const { after, limit } = parsePage(page, tenantIdSchema)
    return pageOf(this.#options.store.tenants({ after, limit: limit + 1 }), limit)
  }

  async update(id: string, change: TenantChange, by: Actor): Promise<TenantInfo> {
    const wanted = parseObject(tenantChangeSchema, change, { what: 'tenant', objects: ['quotas'] })
    const policy = change.policy === undefined || change.policy === null ? change.policy : policyAsWritten(change.policy)
    const { id: known } = await this.get(id)
    const { store, trail } = this.#options
    const details = stated({ name: wanted.name, policy, quotas: wanted.quotas && stated(wanted.quotas), audit: wanted.audit }) as Record<string, Json>
    return acting(trail, { act: 'tenant.update', actor: by.key, tenant: known, details: detailsOf(details) }, async () => {
      const changed = await store.changeTenant(known, (tenant) => changedTenant(tenant, { ...wanted, policy }))
      if (!changed) throw missing(known)
      return changed
    })
  }

  async remove(id: string, by: Actor): Promise<boolean> {
    const known = parseWith(tenantIdSchema, id, 'id')
    if (known === defaultTenant) throw new SandboxError('conflict', `tenant ${known} stays: it is whose keys are that name no other`)
    const { store, trail, sandboxesOf = () => 0 } = this.#options
    if (!store.tenant(known)) return false
    const count = sandboxesOf(known)
    if (count > 0) throw new SandboxError('conflict', `tenant ${known} has ${count} sandboxes, which must be closed before`)
    return acting(trail, { act: 'tenant.remove', actor: by.key, tenant: known }, () => store.removeTenant(known))
  }
}

type Changes = Omit<ReturnType<typeof tenantChangeSchema.parse>, 'policy'> & { readonly policy: TenantInfo['policy'] | null }

/** What is not given stays. */
function changedTenant(tenant: TenantInfo, { name, policy, quotas, audit }: Changes): TenantInfo {
  const { name: oldName, policy: oldPolicy, ...rest } = tenant
  const newName = name === undefined ? oldName : (name ?? undefined)
  const newPolicy = policy === undefined ? oldPolicy : (policy ?? undefined)
  return {
    ...rest,
    ...(newName !== undefined && { name: newName }),
    ...(newPolicy !== undefined && { policy: newPolicy }),
    quotas: changedQuotas(tenant.quotas, quotas ?? {}),
    audit: audit === undefined ? tenant.audit : (audit ?? auditSettingsSchema.parse({})),
  }
}

function changedQuotas(quotas: QuotaLimits, changes: NonNullable<Changes['quotas']>): QuotaLimits {
  const changed = Object.entries({ ...quotas, ...stated(changes) }).filter(([, value]) => value !== null)
  return Object.fromEntries(changed)
}

/** Judged as the operator's are, and kept as it was written: units are for people. */
function policyAsWritten(policy: TenantInput['policy']): TenantInfo['policy'] {
  if (policy === undefined) return undefined
  parsePolicy(policy, 'tenant')
  return policy
}

function missing(id: string): SandboxError {
  return new SandboxError('not-found', `there is no tenant ${id}`, { hint: 'glovebox tenants ls' })
}

/** As JSON: a policy as it was written may hold what only TypeScript has. */
function detailsOf(value: object): Record<string, Json> {
  return JSON.parse(JSON.stringify(value)) as Record<string, Json>
}
