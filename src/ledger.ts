/** Beside compose.ts, for what serves many: puts the audit trail, keys, tenants and quotas together, and the platforms of all tenants above them. */
import { join } from 'node:path'
import type { AuditTrail, AuditVerification, AuditHead } from './contract/audit.js'
import type { Signature } from './contract/receipt.js'
import type { PlatformSettings } from './contract/platform-settings.js'
import { type Actor, defaultTenant, type House, scopes } from './contract/tenants.js'
import type { Signing } from './audit/index.js'
import type { TenantRooms } from './tenants/index.js'
import { engineOptions, sweepLeftovers } from './compose.js'
import { Engine } from './engine/engine.js'
import { documentSigner, signatureProblem } from './receipt/index.js'
import { ownPart, serverFolder, serverPlace, snapshotPlace } from './sys/places.js'
import { findReceiptKey, loadReceiptKey } from './sys/receipt-key.js'
import { hasSqlite } from './sys/sqlite.js'
import { createSnapshotStore, tenantPrefix } from './templates/snapshots.js'
import { createEventBus } from './watch/event-bus.js'
import type { HouseWatch } from './watch/house-watch.js'

/** So many events of a server can be read again; of each tenant so many. */
const keptEvents = 4096

/** Whoever may open the state folder of this machine. */
export const localActor: Actor = { key: 'local', tenant: defaultTenant, scopes }

export interface Ledger extends TenantRooms {
  readonly trail: AuditTrail
}

export interface LedgerOptions {
  /** Instead of the usual place; made when it is missing, and refused when others may write there. */
  readonly folder?: string
  /** With less room than that, nothing new is taken. */
  readonly leastFreeBytes?: number
  /** Told how long a record of the trail took until it was on the disk. */
  readonly onAppended?: (ms: number) => void
}

/** Those of this machine's user. Heads of the trail are signed with the key that signs receipts. */
export async function openLedger({ folder: given, ...options }: LedgerOptions = {}): Promise<Ledger> {
  const folder = given === undefined ? serverPlace() : ownPart(given, '.')
  const [{ openAuditTrail }, { openTenants }] = await Promise.all([import('./audit/index.js'), import('./tenants/index.js')])
  const { privateKey, publicKey } = await loadReceiptKey()
  const signing: Signing = { sign: documentSigner(privateKey), problemOf: (document) => signatureProblem(document, publicKey) }
  const trail = await openAuditTrail(join(folder, 'audit.db'), { signing, ...options })
  const rooms = await openTenants(join(folder, 'tenants.db'), { trail }).catch(async (error: unknown) => {
    await trail[Symbol.asyncDispose]()
    throw error
  })
  return {
    ...rooms,
    trail,
    async [Symbol.asyncDispose]() {
      await rooms[Symbol.asyncDispose]()
      await trail[Symbol.asyncDispose]()
    },
  }
}

/** Whether there is one: opening it makes it. */
export function hasLedger(folder = serverFolder()): boolean {
  return hasSqlite(join(folder, 'audit.db'))
}

/** Lines that were exported, held against this user's own key where there is one. */
export async function verifyAuditExport(lines: AsyncIterable<string>, anchor?: AuditHead): Promise<AuditVerification> {
  const { verifyExport } = await import('./audit/index.js')
  const publicKey = await findReceiptKey()
  const problemOf = (document: { readonly signature: Signature }): string | undefined => signatureProblem(document, publicKey)
  return verifyExport({ lines, problemOf, trusted: publicKey !== undefined, ...(anchor && { anchor }) })
}

export interface HouseSettings extends PlatformSettings {
  /** Not given: nothing is counted or traced. */
  readonly watch?: Pick<HouseWatch, 'platform' | 'follow'>
}

/**
 * The platforms of all tenants, each an engine of its own, so that neither a cell nor a snapshot's name is ever another's; drivers, templates and the way out are shared. Tells first, in
 * the trail, which sandboxes an earlier server left, and takes away the halves of snapshots that it did. Whoever opens it disposes of it, before the ledger.
 */
export async function openHouse({ trail, tenants, quotas }: Ledger, { watch, ...settings }: HouseSettings = {}): Promise<House> {
  const events = createEventBus({ keep: keptEvents })
  watch?.follow(events)
  const [{ auditedPlatform, beginServing, Watch }, { TenantHouse }] = await Promise.all([import('./audit/index.js'), import('./tenants/index.js')])
  const { policy, egress, onIdleExit: _, ...shared } = engineOptions(settings)
  const snapshots = (): string => settings.snapshotDir ?? snapshotPlace()
  await sweepLeftovers(settings).catch(() => undefined)
  const lost = await beginServing(trail, { version: shared.machine.version, pid: process.pid })
  return new TenantHouse({
    tenants,
    quotas,
    events,
    policy,
    lost,
    open: (order) => {
      const engine = new Engine({
        ...shared,
        tenant: order.tenant,
        events: events.of(order.tenant),
        get policy() {
          return order.policy()
        },
        snapshots: createSnapshotStore(order.tenant === defaultTenant ? snapshots : () => ownPart(snapshots(), `${tenantPrefix}${order.tenant}`)),
        // One for all: it ends with the house.
        ...(egress && { egress: { ...egress, open: (way) => egress.open({ ...way, budget: order.budget }), close: () => Promise.resolve() } }),
      })
      return watch?.platform(engine) ?? engine
    },
    watcher: (order) => new Watch({ ...order, trail }),
    view: (platform, view) => auditedPlatform(platform, { ...view, trail }),
    onSpent: async (tenant) => {
      // Rejected only when the trail is closed, with everything.
      await trail.tell({ act: 'quota.spend', actor: 'system', tenant, details: { quota: 'egressPerDay' } }).catch(() => undefined)
    },
    onClose: async () => {
      await egress?.close()
      await trail.tell({ act: 'server.stop', actor: 'system', details: { pid: process.pid } })
    },
  })
}
