import type { AuditTrail } from '../contract/audit.js'
import { openSqlite } from '../sys/sqlite.js'
import { KeyRing } from './keys.js'
import { QuotaKeeper } from './quotas.js'
import { SqliteTenantStore, tenantTables } from './sqlite-store.js'
import { TenantRegister } from './tenants.js'

export { TenantHouse } from './house.js'

export interface TenantRooms extends AsyncDisposable {
  readonly keys: KeyRing
  readonly tenants: TenantRegister
  readonly quotas: QuotaKeeper
}

/** Keys, tenants and quotas in this file, which is made when it is missing, with the tenant that is always there. */
export async function openTenants(path: string, { trail }: { readonly trail: AuditTrail }): Promise<TenantRooms> {
  const store = new SqliteTenantStore(await openSqlite(path, { schema: tenantTables }))
  const quotas = new QuotaKeeper({ store })
  const tenants = new TenantRegister({ store, trail, sandboxesOf: (tenant) => quotas.sandboxesOf(tenant) })
  await tenants.makeDefault()
  return {
    keys: new KeyRing({ store, trail }),
    tenants,
    quotas,
    async [Symbol.asyncDispose]() {
      await quotas.close()
      store.close()
    },
  }
}
