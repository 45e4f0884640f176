import type { Anomaly } from '../contract/anomalies.js'
import type { AuditSettings } from '../contract/audit.js'
import type { SharedBudget } from '../contract/egress.js'
import { SandboxError } from '../contract/errors.js'
import type { EventOrigin, EventSink, PlatformEvents } from '../contract/events.js'
import type { NetworkRecord } from '../contract/network.js'
import type { CallOptions, Platform, SandboxInfo } from '../contract/platform.js'
import type { Policy } from '../contract/policy.js'
import { type Actor, type House, type HouseFilter, includesScope, type Quotas, type TenantInfo, type Tenants } from '../contract/tenants.js'
import { mergePolicies, parsePolicy } from '../policy/policy-file.js'
import { meteredPlatform } from './metered-platform.js'
import { toldQuotas } from './told-quotas.js'

/** Who follows the sandboxes of one tenant. */
export interface Watcher {
  follow(platform: Platform, info: SandboxInfo): Promise<void>
  retell(records: AsyncIterable<NetworkRecord>, info: SandboxInfo): AsyncIterable<NetworkRecord>
  agentOf(sandbox: string): string | undefined
}

export interface WatcherOrder {
  readonly tenant: string
  onAnomaly(info: SandboxInfo, anomaly: Anomaly): void
}

export interface View {
  readonly actor: Actor
  readonly tenant: string
  readonly settings: AuditSettings
  readonly request?: string
  agentOf(sandbox: string): string | undefined
}

/** What a house is put together from; all of it is handed in. */
export interface HouseParts {
  readonly tenants: Tenants
  readonly quotas: Quotas
  /** Where what happens is told; the platforms of tenants tell it there too. */
  readonly events: PlatformEvents & EventSink & { close(): void }
  /** The operator's, beside which each tenant's holds. */
  readonly policy: Policy | undefined
  /** A platform of one tenant's own; the policy is asked for at each use. */
  readonly open: (order: { readonly tenant: string; readonly policy: () => Policy | undefined; readonly budget: SharedBudget }) => Platform
  readonly watcher: (order: WatcherOrder) => Watcher
  /** One actor's view, in which each act is recorded before its effect. */
  view(platform: Platform, view: View): Platform
  /** The day's bytes of a tenant are spent: its sandboxes reach nothing until there are more. */
  onSpent(tenant: string): Promise<void>
  /** Sandboxes of an earlier server, for whoever listens. */
  readonly lost: { readonly lost: readonly { readonly sandbox: string; readonly tenant: string; readonly agent?: string }[]; readonly reason: string }
  /** When all platforms are closed. */
  onClose(): Promise<void>
}

interface Residence {
  readonly platform: Platform
  readonly watcher: Watcher
  readonly rules: TenantRules
}

/** What holds for a tenant, parsed once for as long as it says the same. */
class TenantRules {
  readonly #operator: Policy | undefined
  #text = ''
  #policy: Policy | undefined

  constructor(operator: Policy | undefined) {
    this.#operator = operator
  }

  get policy(): Policy | undefined {
    return this.#policy
  }

  take({ id, policy }: TenantInfo): void {
    const text = JSON.stringify([policy])
    if (text === this.#text) return
    const own = policy === undefined ? undefined : parsePolicy(policy, `tenant ${id}`)
    this.#policy = own && this.#operator ? mergePolicies(this.#operator, own) : (own ?? this.#operator)
    this.#text = text
  }
}

export class TenantHouse implements House {
  readonly #parts: HouseParts
  readonly #residences = new Map<string, Residence>()
  readonly #followed = new Set<Promise<void>>()
  #isClosed = false

  constructor(parts: HouseParts) {
    this.#parts = parts
    const { lost, reason } = parts.lost
    if (lost.length > 0) parts.events.tell({ type: 'restarted', lost: lost.length, reason })
    for (const each of lost) parts.events.tell({ ...each, type: 'lost', code: 'broken', reason })
  }

  async platformFor(actor: Actor, { tenant = actor.tenant, request }: { readonly tenant?: string; readonly request?: string } = {}): Promise<Platform> {
    if (tenant !== actor.tenant && !includesScope(actor.scopes, 'admin'))
      throw new SandboxError('forbidden', 'this key belongs to another tenant', { hint: `glovebox keys create --tenant ${tenant}` })
    const info = await this.#parts.tenants.get(tenant)
    const { platform, watcher } = this.#residenceOf(info)
    const agentOf = (sandbox: string): string | undefined => watcher.agentOf(sandbox)
    return this.#parts.view(platform, { actor, tenant, settings: info.audit, ...(request !== undefined && { request }), agentOf })
  }

  async *list(filter: HouseFilter = {}, options: CallOptions = {}): AsyncGenerator<SandboxInfo> {
    const { tenant, sandbox, ...rest } = filter
    for (const [id, { platform }] of this.#residences) {
      if (tenant !== undefined && tenant !== id) continue
      for await (const info of platform.list(rest, options)) if (sandbox === undefined || info.id === sandbox) yield info
    }
  }

  get events(): PlatformEvents {
    return this.#parts.events
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    const closed = await Promise.allSettled([...this.#residences.values()].map(({ platform }) => platform[Symbol.asyncDispose]()))
    // How each ended is told before the end of all.
    await Promise.all(this.#followed)
    this.#parts.events.close()
    await this.#parts.onClose()
    const failed = closed.find((result) => result.status === 'rejected')
    if (failed) throw failed.reason
  }

  #residenceOf(tenant: TenantInfo): Residence {
    if (this.#isClosed) throw new SandboxError('closed', 'this server is being closed')
    const residence = this.#residences.get(tenant.id) ?? this.#open(tenant.id)
    residence.rules.take(tenant)
    this.#residences.set(tenant.id, residence)
    return residence
  }

  #open(tenant: string): Residence {
    const { open, watcher: watcherOf, events } = this.#parts
    const quotas = toldQuotas(this.#parts.quotas, events)
    const rules = new TenantRules(this.#parts.policy)
    const policy = (): Policy | undefined => rules.policy
    const own = open({ tenant, policy, budget: this.#budgetOf(tenant, quotas) })
    const watcher = watcherOf({
      tenant,
      onAnomaly: (sandbox, anomaly) => this.#parts.events.tell({ ...originOf(sandbox), tenant, type: 'anomaly', ...anomaly }),
    })
    const onBorn = (born: SandboxInfo): Promise<void> => this.#following(watcher.follow(own, born))
    const platform = meteredPlatform(own, { tenant, quotas, policy, onBorn, retell: (records, born) => watcher.retell(records, born) })
    return { platform, watcher, rules }
  }

  /** Told once, to the trail and to those who listen, whenever its last byte is taken. */
  #budgetOf(tenant: string, quotas: Quotas): SharedBudget {
    const budget = quotas.egressOf(tenant)
    return {
      words: budget.words,
      get leftBytes() {
        return budget.leftBytes
      },
      take: (bytes) => {
        budget.take(bytes)
        if (bytes > 0 && budget.leftBytes <= 0) void this.#spent(tenant, quotas)
      },
    }
  }

  async #spent(tenant: string, quotas: Quotas): Promise<void> {
    const { used, limit } = await quotas.usage(tenant).then(({ egressPerDay }) => egressPerDay)
    const reason = `quota egressPerDay of tenant ${tenant} is spent: its sandboxes reach nothing until midnight UTC`
    this.#parts.events.tell({ type: 'quota', tenant, quota: 'egressPerDay', used, limit: limit ?? used, reason })
    await this.#parts.onSpent(tenant)
  }

  #following(followed: Promise<void>): Promise<void> {
    this.#followed.add(followed)
    return followed.finally(() => this.#followed.delete(followed))
  }
}

function originOf({ id, spec }: SandboxInfo): EventOrigin {
  return { sandbox: id, ...(spec.name !== undefined && { name: spec.name }), ...(spec.agent !== undefined && { agent: spec.agent }) }
}
