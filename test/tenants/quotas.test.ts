import { describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import type { QuotaLease, QuotaRequest } from '../../src/contract/tenants.js'
import { QuotaKeeper } from '../../src/tenants/quotas.js'
import { RateWindow } from '../../src/tenants/rate-window.js'
import { SqliteTenantStore, tenantTables } from '../../src/tenants/sqlite-store.js'
import { openSqlite } from '../../src/sys/sqlite.js'
import { join } from 'node:path'
import { operator, ownTenants } from './own-tenants.js'

const small: QuotaRequest = { cpus: 0.1, memory: 2 ** 20, disk: 2 ** 20 }

async function refused(promise: Promise<unknown>): Promise<SandboxError> {
  const error: unknown = await promise.then(
    () => 'was granted',
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof SandboxError)) throw new Error(String(error))
  return error
}

describe('quotas', () => {
  test('of which a thousand ask at once are granted exactly as often as they allow', async () => {
    await using rooms = await ownTenants()
    await rooms.tenants.create({ id: 'acme', quotas: { sandboxes: 37 } }, operator)
    const asked = await Promise.allSettled(Array.from({ length: 1000 }, () => rooms.quotas.reserve('acme', small)))
    const leases = asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    expect(leases).toHaveLength(37)
    expect((await rooms.quotas.usage('acme')).sandboxes).toEqual({ used: 37, limit: 37 })
    for (const lease of leases) for (let twice = 0; twice < 2; twice++) lease.release()
    expect(await rooms.quotas.usage('acme')).toMatchObject({ sandboxes: { used: 0 }, cpus: { used: 0 }, memory: { used: 0 }, disk: { used: 0 } })
  })

  test('that are given back while others ask never hand out more than there is', async () => {
    await using rooms = await ownTenants()
    await rooms.tenants.create({ id: 'acme', quotas: { sandboxes: 5, cpus: 0.5 } }, operator)
    let live = 0
    let most = 0
    let granted = 0
    const one = async (): Promise<void> => {
      const lease: QuotaLease | undefined = await rooms.quotas.reserve('acme', small).catch(() => undefined)
      if (!lease) return
      granted += 1
      most = Math.max(most, ++live)
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 3))
      live -= 1
      lease.release()
    }
    for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 50 }, one))
    expect(most).toBe(5)
    expect(granted).toBeGreaterThanOrEqual(100)
    expect((await rooms.quotas.usage('acme')).cpus).toEqual({ used: 0, limit: 0.5 })
  })

  test('are refused with which, what is used, what was asked for, and the status of too many requests', async () => {
    await using rooms = await ownTenants()
    await rooms.tenants.create({ id: 'acme', quotas: { memory: '8m', cpus: 1, disk: '100m' } }, operator)
    const lease = await rooms.quotas.reserve('acme', { ...small, memory: 6 * 2 ** 20 })
    const error = await refused(rooms.quotas.reserve('acme', { ...small, memory: 3 * 2 ** 20 }))
    expect(error).toMatchObject({ code: 'quota', retryable: true, details: { quota: 'memory', used: 6 * 2 ** 20, limit: 8 * 2 ** 20, asked: 3 * 2 ** 20 } })
    expect(error.message).toBe('quota memory of tenant acme: 6m of 8m of memory used, and 3m more was asked for')
    expect((await refused(rooms.quotas.reserve('acme', { ...small, cpus: 0.91 }))).details).toMatchObject({ quota: 'cpus', used: 0.1 })
    expect((await refused(rooms.quotas.reserve('acme', { ...small, disk: 2 ** 30 }))).details).toMatchObject({ quota: 'disk' })
    // What was refused left nothing behind.
    expect(await rooms.quotas.usage('acme')).toMatchObject({ sandboxes: { used: 1 }, memory: { used: 6 * 2 ** 20 }, createsPerMinute: { used: 1 } })
    lease.release()
  })

  test('of one tenant are not those of another', async () => {
    await using rooms = await ownTenants()
    for (const id of ['one', 'two']) await rooms.tenants.create({ id, quotas: { sandboxes: 1 } }, operator)
    await rooms.quotas.reserve('one', small)
    await rooms.quotas.reserve('two', small)
    expect((await refused(rooms.quotas.reserve('one', small))).code).toBe('quota')
    expect((await refused(rooms.quotas.reserve('three', small))).code).toBe('not-found')
  })

  test('hold what a lease is changed to, and what it held when that is refused', async () => {
    await using rooms = await ownTenants()
    await rooms.tenants.create({ id: 'acme', quotas: { memory: '10m' } }, operator)
    const lease = await rooms.quotas.reserve('acme', { ...small, memory: 4 * 2 ** 20 })
    await lease.change({ ...small, memory: 9 * 2 ** 20 })
    expect((await refused(lease.change({ ...small, memory: 11 * 2 ** 20 }))).code).toBe('quota')
    expect((await rooms.quotas.usage('acme')).memory.used).toBe(9 * 2 ** 20)
    await lease.change({ ...small, memory: 2 ** 20 })
    expect((await rooms.quotas.usage('acme')).memory.used).toBe(2 ** 20)
    lease.release()
    expect((await refused(lease.change(small))).code).toBe('closed')
  })

  test('that are changed by the operator hold from the next request on, also from another process', async () => {
    await using rooms = await ownTenants()
    await rooms.tenants.create({ id: 'acme', quotas: { sandboxes: 1 } }, operator)
    await rooms.quotas.reserve('acme', small)
    await rooms.tenants.update('acme', { quotas: { sandboxes: 2 } }, operator)
    const lease = await rooms.quotas.reserve('acme', small)
    await rooms.tenants.update('acme', { quotas: { sandboxes: 1 } }, operator)
    lease.release()
    expect((await refused(rooms.quotas.reserve('acme', small))).code).toBe('quota')
    await rooms.tenants.update('acme', { quotas: { sandboxes: null } }, operator)
    await rooms.quotas.reserve('acme', small)
    expect((await rooms.quotas.usage('acme')).sandboxes).toEqual({ used: 2, limit: null })
  })

  test('of creates allow so many within any minute, and say when the next may be made', async () => {
    await using rooms = await ownTenants()
    await rooms.tenants.create({ id: 'acme', quotas: { createsPerMinute: 10 } }, operator)
    let now = Date.parse('2026-05-01T10:00:00Z')
    const store = new SqliteTenantStore(await openSqlite(join(rooms.folder, 'tenants.db'), { schema: tenantTables }))
    const quotas = new QuotaKeeper({ store, now: () => now })
    const granted: number[] = []
    for (; now < Date.parse('2026-05-01T10:05:00Z'); now += 777) {
      const lease = await quotas.reserve('acme', small).catch(() => undefined)
      if (lease) granted.push(now)
      lease?.release()
    }
    const within = granted.map((from) => granted.filter((at) => at >= from && at < from + 60_000).length)
    expect(Math.max(...within)).toBe(10)
    expect(granted.length).toBeGreaterThan(45)
    const error = await refused(quotas.reserve('acme', { ...small, sandboxes: 10 }))
    expect(error.details).toMatchObject({ quota: 'createsPerMinute', limit: 10, asked: 10 })
    now += error.retryAfterMs ?? 0
    await quotas.reserve('acme', { ...small, sandboxes: 10 })
    expect((await refused(quotas.reserve('acme', { ...small, sandboxes: 11 }))).retryAfterMs).toBeUndefined()
    store.close()
  })

  test('of what is sent in a day are kept over a restart, and begin anew at midnight', async () => {
    await using rooms = await ownTenants()
    await rooms.tenants.create({ id: 'acme', quotas: { egressPerDay: '1m' } }, operator)
    let now = Date.parse('2026-05-01T23:59:00Z')
    const open = async () => {
      const store = new SqliteTenantStore(await openSqlite(join(rooms.folder, 'tenants.db'), { schema: tenantTables }))
      return { store, quotas: new QuotaKeeper({ store, now: () => now }) }
    }
    const first = await open()
    const spend = ({ quotas }: typeof first, bytes: number): number => {
      const budget = quotas.egressOf('acme')
      budget.take(bytes)
      return budget.leftBytes
    }
    expect(spend(first, 2 ** 19)).toBe(2 ** 19)
    await first.quotas.close()
    first.store.close()
    const second = await open()
    expect((await second.quotas.usage('acme')).egressPerDay).toEqual({ used: 2 ** 19, limit: 2 ** 20 })
    expect(spend(second, 2 ** 19)).toBe(0)
    const error = await refused(second.quotas.reserve('acme', { ...small, hasNetwork: true }))
    expect(error).toMatchObject({ code: 'quota', retryAfterMs: 60_000, details: { quota: 'egressPerDay' } })
    await second.quotas.reserve('acme', small)
    now += 60_000
    await second.quotas.reserve('acme', { ...small, hasNetwork: true })
    await second.quotas.close()
    second.store.close()
  })
})

test('a window counts a slice until all of it is too old', () => {
  const window = new RateWindow({ windowMs: 1000, slices: 10 })
  window.add(3, 50)
  expect(window.sum(1000)).toBe(3)
  expect(window.sum(1099)).toBe(3)
  expect(window.sum(1100)).toBe(0)
  window.add(1, 1100)
  window.add(1, 1300)
  expect(window.msUntil(2, 1300)).toBe(1100)
})
