import type { KeyFilter, KeyInfo, Scope, TenantInfo } from '../contract/tenants.js'
import type { SqlDatabase, SqlRow, SqlValue } from '../sys/sqlite.js'
import type { StoredKey, TenantStore } from './store.js'

export const tenantTables = `
CREATE TABLE IF NOT EXISTS tenants (id TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS keys (
  place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, hash BLOB NOT NULL, tenant TEXT NOT NULL REFERENCES tenants (id), scopes TEXT NOT NULL, name TEXT,
  created_at TEXT NOT NULL, expires_at TEXT, revoked_at TEXT, last_used_at TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS keys_by_tenant ON keys (tenant, place);
CREATE TABLE IF NOT EXISTS egress (tenant TEXT NOT NULL, day TEXT NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (tenant, day)) STRICT;
`

const daysKept = 31

export class SqliteTenantStore implements TenantStore {
  readonly #database: SqlDatabase

  constructor(database: SqlDatabase) {
    this.#database = database
  }

  async addKey({ id, hash, tenant, scopes, name, createdAt, expiresAt }: StoredKey): Promise<boolean> {
    const sql = 'INSERT INTO keys (id, hash, tenant, scopes, name, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)'
    return this.#write(() => {
      if (!this.tenant(tenant)) return false
      this.#database.run(sql, id, hash, tenant, scopes.join(' '), name ?? null, createdAt, expiresAt ?? null)
      return true
    })
  }

  key(id: string): StoredKey | undefined {
    const row = this.#database.get('SELECT * FROM keys WHERE id = ?', id)
    return row && { ...keyOf(row), hash: new Uint8Array(row.hash as Uint8Array) }
  }

  keys({ tenant, all = false, after, limit, now }: KeyFilter & { after: string | undefined; limit: number; now: string }): readonly KeyInfo[] {
    const parts: (readonly [string, readonly SqlValue[]])[] = [
      ...(tenant === undefined ? [] : [['tenant = ?', [tenant]] as const]),
      ...(after === undefined ? [] : [['place > (SELECT place FROM keys WHERE id = ?)', [after]] as const]),
      ...(all ? [] : [['revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)', [now]] as const]),
    ]
    const where = parts.length === 0 ? '' : ` WHERE ${parts.map(([text]) => text).join(' AND ')}`
    return this.#database.all(`SELECT * FROM keys${where} ORDER BY place LIMIT ?`, ...parts.flatMap(([, values]) => values), limit).map(keyOf)
  }

  async revokeKey(id: string, at: string): Promise<boolean> {
    const { changes } = await this.#write(() => this.#database.run('UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL', at, id))
    return changes > 0
  }

  async noteKeyUse(id: string, at: string): Promise<void> {
    await this.#database.write(() => this.#database.run('UPDATE keys SET last_used_at = ? WHERE id = ?', at, id))
  }

  async addTenant(tenant: TenantInfo): Promise<boolean> {
    const sql = 'INSERT INTO tenants (id, text) VALUES (?, ?) ON CONFLICT DO NOTHING'
    const { changes } = await this.#write(() => this.#database.run(sql, tenant.id, JSON.stringify(tenant)))
    return changes > 0
  }

  tenant(id: string): TenantInfo | undefined {
    const row = this.#database.get('SELECT text FROM tenants WHERE id = ?', id)
    return row && tenantOf(row)
  }

  tenants({ after, limit }: { after: string | undefined; limit: number }): readonly TenantInfo[] {
    return this.#database.all('SELECT text FROM tenants WHERE id > ? ORDER BY id LIMIT ?', after ?? '', limit).map(tenantOf)
  }

  async changeTenant(id: string, change: (tenant: TenantInfo) => TenantInfo): Promise<TenantInfo | undefined> {
    return this.#write(() => {
      const known = this.tenant(id)
      if (!known) return undefined
      const changed = change(known)
      this.#database.run('UPDATE tenants SET text = ? WHERE id = ?', JSON.stringify(changed), id)
      return changed
    })
  }

  async removeTenant(id: string): Promise<boolean> {
    return this.#write(() => {
      this.#database.run('DELETE FROM keys WHERE tenant = ?', id)
      this.#database.run('DELETE FROM egress WHERE tenant = ?', id)
      return this.#database.run('DELETE FROM tenants WHERE id = ?', id).changes > 0
    })
  }

  async addEgress({ tenant, day, bytes }: { tenant: string; day: string; bytes: number }): Promise<number> {
    const sql = 'INSERT INTO egress (tenant, day, bytes) VALUES (?, ?, ?) ON CONFLICT (tenant, day) DO UPDATE SET bytes = bytes + excluded.bytes'
    return this.#database.write(() => {
      this.#database.run(sql, tenant, day, bytes)
      this.#database.run('DELETE FROM egress WHERE tenant = ? AND day < date(?, ?)', tenant, day, `-${daysKept} days`)
      return this.egress(tenant, day)
    })
  }

  egress(tenant: string, day: string): number {
    return (this.#database.get('SELECT bytes FROM egress WHERE tenant = ? AND day = ?', tenant, day)?.bytes as number | undefined) ?? 0
  }

  close(): void {
    this.#database.close()
  }

  /** On the disk when it resolves. */
  async #write<T>(act: () => T): Promise<T> {
    const result = await this.#database.write(act)
    await this.#database.sync()
    return result
  }
}

function tenantOf(row: SqlRow): TenantInfo {
  return JSON.parse(row.text as string) as TenantInfo
}

function keyOf(row: SqlRow): KeyInfo {
  const text = (name: string): string | undefined => (row[name] as string | null) ?? undefined
  const [name, expiresAt, revokedAt, lastUsedAt] = [text('name'), text('expires_at'), text('revoked_at'), text('last_used_at')]
  return {
    id: row.id as string,
    tenant: row.tenant as string,
    scopes: (row.scopes as string).split(' ') as Scope[],
    ...(name !== undefined && { name }),
    createdAt: row.created_at as string,
    ...(expiresAt !== undefined && { expiresAt }),
    ...(revokedAt !== undefined && { revokedAt }),
    ...(lastUsedAt !== undefined && { lastUsedAt }),
  }
}
