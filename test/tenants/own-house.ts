import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Platform } from '../../src/contract/platform.js'
import type { PlatformSettings } from '../../src/contract/platform-settings.js'
import type { Actor, Scope, TenantInput } from '../../src/contract/tenants.js'
import { createFakeDriver } from '../../src/drivers/fake/driver.js'
import { type Ledger, localActor, openHouse, openLedger } from '../../src/ledger.js'

/** Without walls, and so without waiting: what is tried here is whose a sandbox is and what is told of it. */
export const plain = { driver: 'fake', minTier: 'none' } as const

/** A whole house in a folder of its own, on real engines; gone at the end. */
export async function ownHouse({ tenants = [], settings = {}, folder = mkdtempSync(join(tmpdir(), 'glovebox-house-test-')) }: HouseOptions = {}) {
  const ledger: Ledger = await openLedger({ folder, leastFreeBytes: 0 })
  for (const tenant of tenants) await ledger.tenants.create(tenant, localActor)
  const house = await openHouse(ledger, { drivers: [createFakeDriver()], snapshotDir: join(folder, 'snapshots'), ...settings })
  return {
    folder,
    ledger,
    house,
    as: (tenant: string, scope: Scope = 'run'): Promise<Platform> => house.platformFor(actorOf(tenant, scope)),
    /** Of acts, without those of keys and tenants. */
    async acts(filter: Parameters<Ledger['trail']['list']>[0] = {}) {
      const { items } = await ledger.trail.list(filter, { from: 'oldest', limit: 1000 })
      return items.filter(({ act }) => !/^(?:tenant|key|server)\./.test(act))
    },
    async [Symbol.asyncDispose]() {
      await house[Symbol.asyncDispose]()
      await ledger[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface HouseOptions {
  readonly tenants?: readonly TenantInput[]
  readonly settings?: PlatformSettings
  readonly folder?: string
}

export function actorOf(tenant: string, scope: Scope = 'run'): Actor {
  const all: readonly Scope[] = ['read', 'run', 'admin']
  return { key: `key-of-${tenant}`, tenant, scopes: all.slice(0, all.indexOf(scope) + 1) }
}
