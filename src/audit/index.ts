import { freeBytesAt } from '../sys/free-space.js'
import { openSqlite } from '../sys/sqlite.js'
import { auditTables, SqliteAuditStore } from './sqlite-store.js'
import { Trail, type TrailOptions } from './trail.js'

export { auditedPlatform } from './audited-platform.js'
export { verifyExport } from './export.js'
export { beginServing } from './recovery.js'
export type { Signing } from './signing.js'
export { Watch } from './watching.js'

/** The audit trail in this file, which is made when it is missing. */
export async function openAuditTrail(path: string, options: Pick<TrailOptions, 'signing' | 'leastFreeBytes' | 'onAppended'>): Promise<Trail> {
  const store = new SqliteAuditStore(await openSqlite(path, { schema: auditTables }))
  return new Trail({ ...options, store, freeBytes: () => freeBytesAt(path) })
}
