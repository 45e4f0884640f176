/** A tenant's platform whose sandboxes are held to its quotas: each is reserved before it is made, and given back when nothing of it is left. */
import { limitsSchema } from '../contract/limits.js'
import type { NetworkRecord } from '../contract/network.js'
import type { Platform, SandboxInfo } from '../contract/platform.js'
import type { Policy } from '../contract/policy.js'
import type { OneShot, PlatformPools } from '../contract/pools.js'
import type { SpecInput } from '../contract/spec.js'
import type { QuotaLease, QuotaRequest, Quotas } from '../contract/tenants.js'
import { planSandbox } from '../policy/apply.js'
import { KnownWishes } from './known-wishes.js'

export interface MeterOptions {
  readonly tenant: string
  readonly quotas: Quotas
  policy(): Policy | undefined
  /** A sandbox is there; resolves when it is over. */
  onBorn(info: SandboxInfo): Promise<void>
  /** What a single run did by its network, read here and handed on. */
  retell(records: AsyncIterable<NetworkRecord>, info: SandboxInfo): AsyncIterable<NetworkRecord>
}

export function meteredPlatform(platform: Platform, options: MeterOptions): Platform {
  const meter = new Meter(options)
  const { changes, code, events, files, life, network, ports, processes } = platform
  return {
    changes,
    code,
    events,
    files,
    life,
    network,
    ports,
    processes,
    pools: meteredPools(platform, meter),
    snapshots: {
      take: (id, call) => platform.snapshots.take(id, call),
      list: (call) => platform.snapshots.list(call),
      remove: (snapshot, call) => platform.snapshots.remove(snapshot, call),
      diff: (id, call) => platform.snapshots.diff(id, call),
      export: (id, call) => platform.snapshots.export(id, call),
      fork: async (id, count, call) => {
        const origin = await platform.info(id)
        const several = Number.isSafeInteger(count) && count > 0 ? count : 1
        return meter.bearing({ ...requestOf(origin), sandboxes: several }, () => platform.snapshots.fork(id, count, call))
      },
    },
    create: async (spec, call) => {
      const [info] = await meter.bearing(meter.wish(spec), async () => [await platform.create(spec, call)])
      return info as SandboxInfo
    },
    info: (id, call) => platform.info(id, call),
    list: (filter, call) => platform.list(filter, call),
    start: (id, request, call) => platform.start(id, request, call),
    limit: async (id, limits, call) => meter.changing({ info: await platform.info(id), limits }, () => platform.limit(id, limits, call)),
    usage: (id, call) => platform.usage(id, call),
    receipt: (id, call) => platform.receipt(id, call),
    close: (id) => platform.close(id),
    closeAll: (filter) => platform.closeAll(filter),
    probe: (call) => platform.probe(call),
    [Symbol.asyncDispose]: () => platform[Symbol.asyncDispose](),
  }
}

function meteredPools({ pools }: Platform, meter: Meter): PlatformPools {
  const kept = new Map<string, { readonly lease: QuotaLease; readonly request: QuotaRequest }>()
  return {
    create: async (spec, settings, call) => {
      const request = meter.wish(spec)
      // What waits is nobody's yet, and is counted as made when it is handed out.
      const lease = await meter.reserve({ ...request, sandboxes: settings?.size ?? 1, creates: 0 })
      try {
        const info = await pools.create(spec, settings, call)
        kept.set(info.id, { lease, request })
        await lease.change({ ...request, sandboxes: info.size }).catch(async (error: unknown) => {
          await pools.close(info.id)
          throw error
        })
        return info
      } catch (error) {
        lease.release()
        throw error
      }
    },
    status: (pool, call) => pools.status(pool, call),
    acquire: async (pool, claim, call) => {
      const [info] = await meter.bearing(kept.get(pool)?.request ?? nothing, async () => [await pools.acquire(pool, claim, call)])
      return info as SandboxInfo
    },
    close: async (pool) => {
      await pools.close(pool)
      kept.get(pool)?.lease.release()
      kept.delete(pool)
    },
    take: async (spec, call) => {
      const [info] = await meter.bearing(meter.wish(spec), async () => [await pools.take(spec, call)])
      return info as SandboxInfo
    },
    release: (sandbox) => pools.release(sandbox),
    run: (place, request, call) =>
      meter.shooting('pool' in place ? (kept.get(place.pool)?.request ?? nothing) : meter.wish(place.spec), () => pools.run(place, request, call)),
  }
}

/** For a pool that is not there, of which the platform says so. */
const nothing: QuotaRequest = { sandboxes: 0, cpus: 0, memory: 0, disk: 0 }

class Meter {
  readonly #options: MeterOptions
  readonly #leases = new Map<string, QuotaLease>()
  readonly #wishes = new KnownWishes((spec, policy) => requestOf(planSandbox(spec, policy)))

  constructor(options: MeterOptions) {
    this.#options = options
  }

  /** What a spec takes once policies have completed it. Throws as creating it would. */
  wish(spec: SpecInput): QuotaRequest {
    return this.#wishes.of(spec, this.#options.policy())
  }

  reserve(request: QuotaRequest): Promise<QuotaLease> {
    return this.#options.quotas.reserve(this.#options.tenant, request)
  }

  /** Each gives back its own. */
  async bearing(request: QuotaRequest, make: () => Promise<readonly SandboxInfo[]>): Promise<readonly SandboxInfo[]> {
    const lease = await this.reserve(request)
    try {
      const born = await make()
      const leases = lease.split()
      born.forEach((info, index) => this.#keep(info, leases[index]))
      return born
    } catch (error) {
      lease.release()
      throw error
    }
  }

  /** A single run, until it is released. */
  async shooting(request: QuotaRequest, shoot: () => Promise<OneShot>): Promise<OneShot> {
    const lease = await this.reserve(request)
    try {
      const shot = await shoot()
      const { network } = shot
      return {
        sandbox: shot.sandbox,
        program: shot.program,
        ...(network && { network: { log: this.#options.retell(network.log, shot.sandbox), summary: () => network.summary() } }),
        receipt: (call) => shot.receipt(call),
        release: () => shot.release().finally(() => lease.release()),
      }
    } catch (error) {
      lease.release()
      throw error
    }
  }

  /** What is more is reserved before it is given, and what is less given back after. */
  async changing({ info, limits }: { readonly info: SandboxInfo; readonly limits: unknown }, change: () => Promise<SandboxInfo>): Promise<SandboxInfo> {
    const lease = this.#leases.get(info.id)
    // What is wrong with them is the platform's to say.
    const asked = limitsSchema.safeParse(limits).data
    if (!lease || !asked) return change()
    const { cpus, memory, disk } = requestOf(info)
    await lease.change({ cpus: Math.max(cpus, asked.cpus ?? 0), memory: Math.max(memory, asked.memory ?? 0), disk: Math.max(disk, asked.disk ?? 0) })
    try {
      const changed = await change()
      await lease.change(requestOf(changed))
      return changed
    } catch (error) {
      await lease.change({ cpus, memory, disk })
      throw error
    }
  }

  #keep(info: SandboxInfo, lease: QuotaLease | undefined): void {
    if (lease) this.#leases.set(info.id, lease)
    const over = (): void => {
      this.#leases.delete(info.id)
      lease?.release()
    }
    this.#options.onBorn(info).then(over, over)
  }
}

function requestOf({ spec }: Pick<SandboxInfo, 'spec'>): QuotaRequest {
  const { cpus, memoryBytes, diskBytes } = spec.limits
  return { cpus, memory: memoryBytes, disk: diskBytes, hasNetwork: spec.network !== false }
}
