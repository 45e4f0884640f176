import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { SharedBudget } from '../../src/contract/egress.js'
import type { PlatformEventFacts } from '../../src/contract/events.js'
import type { Platform } from '../../src/contract/platform.js'
import { type HouseParts, TenantHouse } from '../../src/tenants/house.js'
import { operator, ownTenants } from './own-tenants.js'

/** What the way out of a tenant's sandboxes is given, above real quotas; and what is told of it. */
async function ownBudget(onSpent: HouseParts['onSpent'] = () => Promise.resolve()) {
  const rooms = await ownTenants()
  await rooms.tenants.create({ id: 'acme', quotas: { egressPerDay: 1000 } }, operator)
  const told: PlatformEventFacts[] = []
  let budget: SharedBudget | undefined
  const house = new TenantHouse({
    tenants: rooms.tenants,
    quotas: rooms.quotas,
    lost: { lost: [], reason: '' },
    events: { tell: (facts: PlatformEventFacts) => told.push(facts) },
    open: (order: Parameters<HouseParts['open']>[0]) => {
      budget = order.budget
      return {} as Platform
    },
    watcher: () => undefined,
    view: (whole: Platform) => whole,
    onSpent,
  } as unknown as HouseParts)
  await house.platformFor({ key: 'k', tenant: 'acme', scopes: ['run'] })
  if (!budget) throw new Error('no budget was handed over')
  return { rooms, budget, told, [Symbol.asyncDispose]: () => rooms[Symbol.asyncDispose]() }
}

const settle = async (): Promise<void> => {
  for (let turns = 0; turns < 20; turns += 1) await turn()
}

test('the last byte of a day is told once, to the trail and to those who listen', async () => {
  const spent: string[] = []
  await using own = await ownBudget((tenant) => Promise.resolve(void spent.push(tenant)))
  own.budget.take(999)
  await settle()
  expect([own.budget.leftBytes, own.told, spent]).toEqual([1, [], []])
  own.budget.take(1)
  own.budget.take(0)
  await settle()
  expect([own.budget.leftBytes, spent]).toEqual([0, ['acme']])
  expect(own.told).toEqual([
    {
      type: 'quota',
      tenant: 'acme',
      quota: 'egressPerDay',
      used: 1000,
      limit: 1000,
      reason: expect.stringContaining('egressPerDay of tenant acme is spent') as string,
    },
  ])
})

test('a trail that cannot be written to holds up no cut', async () => {
  await using own = await ownBudget(() => new Promise(() => undefined))
  own.budget.take(5000)
  expect(own.budget.leftBytes).toBe(0)
})

test('what cannot be counted is let out no more', async () => {
  await using own = await ownBudget()
  expect(own.budget.leftBytes).toBe(1000)
  await own.rooms.tenants.remove('acme', operator)
  await expect.poll(() => own.budget.leftBytes, { timeout: 5000 }).toBe(0)
})

test('a quota that is raised holds for what is under way', async () => {
  await using own = await ownBudget()
  own.budget.take(1000)
  await own.rooms.tenants.update('acme', { quotas: { egressPerDay: 3000 } }, operator)
  await expect.poll(() => own.budget.leftBytes, { timeout: 5000 }).toBe(2000)
})

test('what is being written down counts meanwhile', async () => {
  await using own = await ownBudget()
  own.budget.take(600)
  const closing = own.rooms.quotas.close()
  own.budget.take(300)
  expect(own.budget.leftBytes).toBe(100)
  await closing
  await own.rooms.quotas.close()
  expect((await own.rooms.quotas.usage('acme')).egressPerDay.used).toBe(900)
})
