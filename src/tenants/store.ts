import type { KeyFilter, KeyInfo, TenantInfo } from '../contract/tenants.js'

/** A key as it is kept. */
export interface StoredKey extends KeyInfo {
  readonly hash: Uint8Array
}

/** Where keys, tenants and what was sent are kept. It judges nothing; another database takes its place by doing the same. */
export interface TenantStore {
  /** False when its tenant is not there. */
  addKey(key: StoredKey): Promise<boolean>
  key(id: string): StoredKey | undefined
  /** By creation, behind a key. */
  keys(filter: KeyFilter & { readonly after: string | undefined; readonly limit: number; readonly now: string }): readonly KeyInfo[]
  /** False when there is none that is not revoked. */
  revokeKey(id: string, at: string): Promise<boolean>
  /** Not waited for, and lost with the machine's power at worst. */
  noteKeyUse(id: string, at: string): Promise<void>
  /** False when there is one with this id. */
  addTenant(tenant: TenantInfo): Promise<boolean>
  tenant(id: string): TenantInfo | undefined
  tenants(page: { readonly after: string | undefined; readonly limit: number }): readonly TenantInfo[]
  /** Undefined when there is none; what `change` throws changes nothing. */
  changeTenant(id: string, change: (tenant: TenantInfo) => TenantInfo): Promise<TenantInfo | undefined>
  /** With its keys. */
  removeTenant(id: string): Promise<boolean>
  /** Adds to what a tenant sent on a day; resolves to the sum. */
  addEgress(spent: { readonly tenant: string; readonly day: string; readonly bytes: number }): Promise<number>
  egress(tenant: string, day: string): number
  close(): void
}
