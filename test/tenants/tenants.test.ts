import { describe, expect, test } from 'vitest'
import { operator, ownTenants } from './own-tenants.js'

describe('tenants', () => {
  test('are made, told, changed and removed, and each act is in the audit trail with who did it', async () => {
    await using rooms = await ownTenants()
    const made = await rooms.tenants.create({ id: 'acme', name: 'Acme', policy: { ceiling: { limits: { memory: '1g' } } }, quotas: { memory: '4g' } }, operator)
    expect(made).toEqual({
      id: 'acme',
      name: 'Acme',
      policy: { ceiling: { limits: { memory: '1g' } } },
      quotas: { memory: 4 * 2 ** 30 },
      audit: { code: 'full', env: 'names', receipts: 'asked' },
      createdAt: made.createdAt,
    })
    expect(await rooms.tenants.get('acme')).toEqual(made)
    const changed = await rooms.tenants.update('acme', { name: null, policy: 'strict', quotas: { sandboxes: 3 }, audit: { code: 'hash' } }, operator)
    const { name, ...rest } = made
    expect(name).toBe('Acme')
    const audit = { code: 'hash', env: 'names', receipts: 'asked' }
    expect(changed).toEqual({ ...rest, policy: 'strict', quotas: { memory: 4 * 2 ** 30, sandboxes: 3 }, audit })
    expect((await rooms.tenants.list()).items.map(({ id }) => id)).toEqual(['acme', 'default'])
    const key = await rooms.keys.create({ tenant: 'acme' }, operator)
    expect(await rooms.tenants.remove('acme', operator)).toBe(true)
    expect(await rooms.tenants.remove('acme', operator)).toBe(false)
    await expect(rooms.keys.authenticate(key.secret)).rejects.toMatchObject({ code: 'unauthorized' })
    const { items } = await rooms.trail.list({ tenant: 'acme' }, { from: 'oldest' })
    const acts = items.filter(({ of }) => of === undefined).map(({ act, actor }) => `${act} by ${actor}`)
    expect(acts).toEqual(['tenant.create by local', 'tenant.update by local', 'key.create by local', 'tenant.remove by local'])
  })

  test('have ids that fit into paths and labels, and nothing else is taken', async () => {
    await using rooms = await ownTenants()
    for (const id of ['', '-a', 'a-', 'A', 'a.b', '..', 'a/b', 'a'.repeat(41), 'ä', 'a b', 'a\0'])
      await expect(rooms.tenants.create({ id }, operator)).rejects.toMatchObject({ code: 'invalid' })
    await rooms.tenants.create({ id: 'a'.repeat(40) }, operator)
  })

  test('with a policy that is none are refused, and misspelt quotas too', async () => {
    await using rooms = await ownTenants()
    await expect(rooms.tenants.create({ id: 'x', policy: { ceilin: {} } as object }, operator)).rejects.toMatchObject({ code: 'invalid' })
    await expect(rooms.tenants.create({ id: 'x', quotas: { sandbox: 1 } as object }, operator)).rejects.toMatchObject({ code: 'invalid' })
    await expect(rooms.tenants.get('x')).rejects.toMatchObject({ code: 'not-found' })
  })

  test('cannot be made twice, nor removed while they have sandboxes, and the default one stays', async () => {
    await using rooms = await ownTenants()
    await rooms.tenants.create({ id: 'acme' }, operator)
    await expect(rooms.tenants.create({ id: 'acme' }, operator)).rejects.toMatchObject({ code: 'conflict' })
    const lease = await rooms.quotas.reserve('acme', { cpus: 1, memory: 1, disk: 1 })
    await expect(rooms.tenants.remove('acme', operator)).rejects.toMatchObject({ code: 'conflict' })
    lease.release()
    expect(await rooms.tenants.remove('acme', operator)).toBe(true)
    await expect(rooms.tenants.remove('default', operator)).rejects.toMatchObject({ code: 'conflict' })
  })
})
