/**
 * What tenants use of what they may. It is counted in the process that owns their sandboxes, in one turn of it, so that no two who ask at once both get the last one; with that process the
 * sandboxes end, and so do the leases. What was sent in a day is kept in the store.
 */
import type { SharedBudget } from '../contract/egress.js'
import { SandboxError } from '../contract/errors.js'
import { bytesInUnits } from '../contract/quantities.js'
import type { QuotaLease, QuotaLimits, QuotaName, QuotaRequest, Quotas, QuotaUse, TenantUsage } from '../contract/tenants.js'
import { EgressDays } from './egress-days.js'
import { RateWindow } from './rate-window.js'
import type { TenantStore } from './store.js'

/** Of what a sandbox holds as long as it lives. */
const heldNames = ['sandboxes', 'cpus', 'memory', 'disk'] as const
type Held = Record<(typeof heldNames)[number], number>

interface Account {
  readonly held: Held
  readonly creates: RateWindow
}

export interface QuotaKeeperOptions {
  readonly store: TenantStore
  /** Milliseconds since 1970. */
  readonly now?: () => number
}

export class QuotaKeeper implements Quotas {
  readonly #store: TenantStore
  readonly #now: () => number
  readonly #accounts = new Map<string, Account>()
  readonly #days: EgressDays

  constructor({ store, now = Date.now }: QuotaKeeperOptions) {
    this.#store = store
    this.#now = now
    this.#days = new EgressDays(store, now)
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- what is refused is told by a rejection
  async reserve(tenant: string, request: QuotaRequest): Promise<QuotaLease> {
    const quotas = this.#quotasOf(tenant)
    const account = this.#accountOf(tenant)
    const wanted = heldBy(request)
    const creates = request.creates ?? wanted.sandboxes
    this.#checkHeld(tenant, { quotas, held: account.held, more: wanted })
    this.#checkCreates(tenant, { limit: quotas.createsPerMinute, account, creates })
    if (request.hasNetwork) this.#checkEgress(tenant, quotas.egressPerDay)
    add(account.held, wanted, 1)
    account.creates.add(creates, this.#now())
    return this.#lease(tenant, { account, wanted })
  }

  egressOf(tenant: string): SharedBudget {
    const limit = new Fresh(() => this.#quotasOf(tenant).egressPerDay ?? Infinity, this.#now)
    const left = (): number => Math.max(0, limit.value - this.#days.used(tenant))
    return {
      words: 'the bytes that may be sent and received in a day are spent',
      get leftBytes() {
        try {
          return left()
        } catch {
          // What cannot be counted is let out no more.
          return 0
        }
      },
      take: (bytes) => {
        if (bytes > 0) this.#days.add(tenant, bytes)
      },
    }
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- another store would be waited for
  async usage(tenant: string): Promise<TenantUsage> {
    const quotas = this.#quotasOf(tenant)
    const account = this.#accounts.get(tenant)
    const use = (name: QuotaName, used: number): QuotaUse => ({ used, limit: quotas[name] ?? null })
    return {
      sandboxes: use('sandboxes', account?.held.sandboxes ?? 0),
      cpus: use('cpus', round(account?.held.cpus ?? 0)),
      memory: use('memory', account?.held.memory ?? 0),
      disk: use('disk', account?.held.disk ?? 0),
      createsPerMinute: use('createsPerMinute', account?.creates.sum(this.#now()) ?? 0),
      egressPerDay: use('egressPerDay', this.#days.used(tenant)),
    }
  }

  sandboxesOf(tenant: string): number {
    return this.#accounts.get(tenant)?.held.sandboxes ?? 0
  }

  /** What was sent is in the store when this resolves. */
  async close(): Promise<void> {
    await this.#days.flush()
  }

  #lease(tenant: string, { account, wanted }: { readonly account: Account; readonly wanted: Held }): QuotaLease {
    let held: Held | undefined = wanted
    return {
      // eslint-disable-next-line @typescript-eslint/require-await -- as above
      change: async (request) => {
        if (!held) throw new SandboxError('closed', 'what this was reserved for is over')
        const next = heldBy(request)
        const more = Object.fromEntries(heldNames.map((name) => [name, next[name] - (held?.[name] ?? 0)])) as Held
        this.#checkHeld(tenant, { quotas: this.#quotasOf(tenant), held: account.held, more })
        add(account.held, more, 1)
        held = next
      },
      split: () => {
        const { sandboxes = 0, cpus = 0, memory = 0, disk = 0 } = held ?? {}
        held = undefined
        const each = { sandboxes: 1, cpus: cpus / sandboxes, memory: memory / sandboxes, disk: disk / sandboxes }
        return Array.from({ length: sandboxes }, () => this.#lease(tenant, { account, wanted: each }))
      },
      release: () => {
        if (held) add(account.held, held, -1)
        held = undefined
      },
    }
  }

  /** What is not more than before is never refused. */
  #checkHeld(tenant: string, { quotas, held, more }: { readonly quotas: QuotaLimits; readonly held: Held; readonly more: Held }): void {
    for (const name of heldNames) {
      const limit = quotas[name]
      if (limit === undefined || more[name] <= 0) continue
      // Parts of processors are no sums of powers of two.
      if (round(held[name] + more[name]) > limit) throw refusal(tenant, { quota: name, used: round(held[name]), limit, asked: more[name] })
    }
  }

  #checkCreates(
    tenant: string,
    { limit, account, creates }: { readonly limit: number | undefined; readonly account: Account; readonly creates: number },
  ): void {
    if (limit === undefined || creates === 0) return
    const now = this.#now()
    const used = account.creates.sum(now)
    if (used + creates <= limit) return
    const retryAfterMs = creates > limit ? undefined : account.creates.msUntil(used + creates - limit, now)
    throw refusal(tenant, { quota: 'createsPerMinute', used, limit, asked: creates, retryAfterMs })
  }

  #checkEgress(tenant: string, limit: number | undefined): void {
    const used = this.#days.used(tenant)
    if (limit === undefined || used < limit) return
    throw refusal(tenant, { quota: 'egressPerDay', used, limit, asked: 0, retryAfterMs: this.#days.msUntilMidnight() })
  }

  #quotasOf(tenant: string): QuotaLimits {
    const found = this.#store.tenant(tenant)
    if (!found) throw new SandboxError('not-found', `there is no tenant ${tenant}`)
    return found.quotas
  }

  #accountOf(tenant: string): Account {
    const known = this.#accounts.get(tenant)
    if (known) return known
    const made = { held: { sandboxes: 0, cpus: 0, memory: 0, disk: 0 }, creates: new RateWindow({ windowMs: 60_000, slices: 600 }) }
    this.#accounts.set(tenant, made)
    return made
  }
}

const freshMs = 1000

/** What is asked for with every piece of a stream, and looked up once a second. */
class Fresh {
  readonly #read: () => number
  readonly #now: () => number
  #value = 0
  #until = -Infinity

  constructor(read: () => number, now: () => number) {
    this.#read = read
    this.#now = now
  }

  get value(): number {
    const now = this.#now()
    if (now < this.#until && now >= this.#until - freshMs) return this.#value
    this.#value = this.#read()
    this.#until = now + freshMs
    return this.#value
  }
}

/** A number that is none would be more than nothing, and count as nothing. */
function heldBy({ sandboxes = 1, cpus, memory, disk }: QuotaRequest): Held {
  if ([sandboxes, cpus, memory, disk].some((amount) => !Number.isFinite(amount) || amount < 0))
    throw new SandboxError('invalid', 'what is reserved must be numbers from 0 on')
  return { sandboxes, cpus: cpus * sandboxes, memory: memory * sandboxes, disk: disk * sandboxes }
}

function add(held: Held, more: Held, sign: 1 | -1): void {
  for (const name of heldNames) held[name] = Math.max(0, round(held[name] + sign * more[name]))
}

/** To a thousandth of a processor, so that what was given back is gone. */
function round(value: number): number {
  return Math.round(value * 1000) / 1000
}

interface Excess {
  readonly quota: QuotaName
  readonly used: number
  readonly limit: number
  readonly asked: number
  readonly retryAfterMs?: number | undefined
}

const words: Readonly<Record<QuotaName, { readonly what: string; readonly flag: string; readonly isBytes: boolean }>> = {
  sandboxes: { what: 'sandboxes at once', flag: '--sandboxes', isBytes: false },
  cpus: { what: 'processors', flag: '--cpus', isBytes: false },
  memory: { what: 'of memory', flag: '--memory', isBytes: true },
  disk: { what: 'of disk', flag: '--disk', isBytes: true },
  createsPerMinute: { what: 'sandboxes made per minute', flag: '--creates', isBytes: false },
  egressPerDay: { what: 'sent and received per day', flag: '--egress', isBytes: true },
}

function refusal(tenant: string, { quota, used, limit, asked, retryAfterMs }: Excess): SandboxError {
  const { what, flag, isBytes } = words[quota]
  const shown = (value: number): string => (isBytes ? bytesInUnits(value, Math.round) : String(round(value)))
  const wish = asked > 0 ? `, and ${shown(asked)} more was asked for` : ''
  return new SandboxError('quota', `quota ${quota} of tenant ${tenant}: ${shown(used)} of ${shown(limit)} ${what} used${wish}`, {
    hint: `glovebox tenants set ${tenant} ${flag} …`,
    details: { quota, used, limit, asked },
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  })
}
