import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Platform, SandboxInfo } from '../../src/contract/platform.js'
import { type HouseParts, TenantHouse, type WatcherOrder } from '../../src/tenants/house.js'

/** A house of one tenant whose one sandbox has a network; `spent` is what its first byte brings about. */
async function spent(
  parts: Pick<HouseParts, 'onCutOff'> & { readonly spend: () => Promise<boolean>; readonly update: () => Promise<void> },
): Promise<string[]> {
  const done: string[] = []
  const info = { id: 'one', spec: { network: { allow: ['a.test'] } } } as unknown as SandboxInfo
  const platform = {
    list: async function* () {
      await turn()
      yield info
    },
    network: { update: () => parts.update().then(() => void done.push('no network')) },
    close: () => Promise.resolve(void done.push('closed')),
  } as unknown as Platform
  let order: WatcherOrder | undefined
  const house = new TenantHouse({
    tenants: { get: () => Promise.resolve({ id: 'acme', audit: {} }) },
    quotas: { spend: parts.spend },
    lost: { lost: [], reason: '' },
    open: () => platform,
    watcher: (given: WatcherOrder) => void (order = given),
    view: (whole: Platform) => whole,
    onCutOff: parts.onCutOff,
  } as unknown as HouseParts)
  await house.platformFor({ key: 'k', tenant: 'acme', scopes: ['run'] })
  order?.onTraffic(info, 1)
  for (let turns = 0; turns < 20; turns += 1) await turn()
  return done
}

const written = (): Promise<void> => Promise.resolve()

test('what cannot be counted is cut off', async () => {
  expect(await spent({ spend: () => Promise.reject(new Error('no store')), onCutOff: written, update: written })).toEqual(['no network'])
})

test('a trail that cannot be written to holds up no cut', async () => {
  const never = (): Promise<void> => new Promise(() => undefined)
  expect(await spent({ spend: () => Promise.resolve(false), onCutOff: never, update: written })).toEqual(['no network'])
})

test('a sandbox whose network cannot be taken away is closed', async () => {
  expect(await spent({ spend: () => Promise.resolve(false), onCutOff: written, update: () => Promise.reject(new Error('stuck')) })).toEqual(['closed'])
})

test('within its quota nothing is cut', async () => {
  expect(await spent({ spend: () => Promise.resolve(true), onCutOff: written, update: written })).toEqual([])
})
