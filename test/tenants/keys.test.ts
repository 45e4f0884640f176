import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import { isSameHash, keyIdIn, makeKey } from '../../src/tenants/key-format.js'
import { openTenants } from '../../src/tenants/index.js'
import { Throttle } from '../../src/tenants/throttle.js'
import { operator, ownTenants } from './own-tenants.js'

async function refusalOf(promise: Promise<unknown>): Promise<SandboxError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof SandboxError)) throw new Error(`expected a refusal, got ${String(error)}`)
  return error
}

describe('a key', () => {
  test('opens the door for the tenant and the scopes that it was made with', async () => {
    await using rooms = await ownTenants()
    await rooms.tenants.create({ id: 'acme' }, operator)
    const { secret, ...info } = await rooms.keys.create({ tenant: 'acme', scopes: ['run'], name: 'ci' }, operator)
    expect(secret).toMatch(/^gbx_[a-z0-9]{12}_[A-Za-z0-9]{43}$/)
    expect(await rooms.keys.authenticate(secret)).toEqual({ key: info.id, tenant: 'acme', scopes: ['run'] })
    const { items } = await rooms.keys.list({ tenant: 'acme' })
    expect(items).toEqual([{ ...info, lastUsedAt: expect.stringMatching(/^\d{4}-/) as string }])
  })

  test('is kept as a hash alone, and is never in the audit trail', async () => {
    await using rooms = await ownTenants()
    const { secret } = await rooms.keys.create({}, operator)
    await rooms.keys.authenticate(secret)
    await rooms.trail.tell({ act: 'server.start', actor: 'local', details: { argv: ['serve', '--key', secret] } })
    const held = ['tenants.db', 'tenants.db-wal'].map((name) => readFileSync(join(rooms.folder, name), 'latin1')).join('')
    expect(held.length).toBeGreaterThan(4096)
    expect(held).not.toContain(secret.slice(-43))
    const lines: string[] = []
    for await (const line of rooms.trail.export()) lines.push(line)
    expect(lines.join('')).toContain('key.create')
    expect(lines.join('')).not.toContain(secret.slice(-43))
  })

  test('that is wrong in whatever way is refused in the same words', async () => {
    await using rooms = await ownTenants()
    const good = await rooms.keys.create({}, operator)
    const revoked = await rooms.keys.create({}, operator)
    expect(await rooms.keys.revoke(revoked.id, operator)).toBe(true)
    const soon = new Date(Date.now() + 1500)
    const expired = await rooms.keys.create({ expires: soon.toISOString() }, operator)
    expect(await rooms.keys.authenticate(expired.secret)).toMatchObject({ key: expired.id })
    await new Promise((resolve) => setTimeout(resolve, 1600))
    const flipped = good.secret.slice(0, -1) + (good.secret.endsWith('a') ? 'b' : 'a')
    const wrong = [
      revoked.secret,
      expired.secret,
      flipped,
      good.secret.slice(0, -1),
      `${good.secret}x`,
      good.secret.toUpperCase(),
      good.secret.slice(4),
      makeKey().secret,
      good.id,
      '',
      ' ',
      undefined,
      null,
      7,
      { secret: good.secret },
      'x'.repeat(1_000_000),
      'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.',
    ]
    const refusals = await Promise.all(wrong.map((secret, index) => refusalOf(rooms.keys.authenticate(secret, { source: `10.0.0.${index}` }))))
    const told = refusals.map(({ code, message, hint, details, retryAfterMs }) => JSON.stringify({ code, message, hint, details, retryAfterMs }))
    expect(new Set(told).size).toBe(1)
    expect(refusals[0]).toMatchObject({ code: 'unauthorized' })
    // The same key, untouched, is still good.
    expect(await rooms.keys.authenticate(good.secret)).toMatchObject({ key: good.id })
  })

  test('that another process revoked is refused from the next request on', async () => {
    await using rooms = await ownTenants()
    const { id, secret } = await rooms.keys.create({}, operator)
    await rooms.keys.authenticate(secret)
    await using other = await openTenants(join(rooms.folder, 'tenants.db'), { trail: rooms.trail })
    expect(await other.keys.revoke(id, operator)).toBe(true)
    expect(await other.keys.revoke(id, operator)).toBe(false)
    expect((await refusalOf(rooms.keys.authenticate(secret))).code).toBe('unauthorized')
    expect((await rooms.keys.list()).items).toEqual([])
    expect((await rooms.keys.list({ all: true })).items).toMatchObject([{ id, revokedAt: expect.any(String) as string }])
  })

  test('is not made for a tenant that is not there, nor without a scope', async () => {
    await using rooms = await ownTenants()
    expect((await refusalOf(rooms.keys.create({ tenant: 'nobody' }, operator))).code).toBe('not-found')
    expect((await refusalOf(rooms.keys.create({ scopes: [] }, operator))).code).toBe('invalid')
    expect((await refusalOf(rooms.keys.create({ scope: ['run'] } as object, operator))).message).toContain('scope')
  })

  test('is paged through in the order of making', async () => {
    await using rooms = await ownTenants()
    const made = []
    for (let index = 0; index < 7; index++) made.push((await rooms.keys.create({}, operator)).id)
    const first = await rooms.keys.list({}, { limit: 3 })
    const second = await rooms.keys.list({}, { limit: 3, cursor: first.next ?? '' })
    const third = await rooms.keys.list({}, { limit: 3, cursor: second.next ?? '' })
    expect([...first.items, ...second.items, ...third.items].map(({ id }) => id)).toEqual(made)
    expect(third.next).toBeUndefined()
  })

  test('and its use, its refusal and who made and revoked it are in the audit trail', async () => {
    await using rooms = await ownTenants()
    const { id, secret } = await rooms.keys.create({}, operator)
    for (let index = 0; index < 5; index++) await rooms.keys.authenticate(secret, { source: '192.0.2.1' })
    await refusalOf(rooms.keys.authenticate('nothing', { source: '192.0.2.2' }))
    await rooms.keys.revoke(id, operator)
    const { items } = await rooms.trail.list({}, { from: 'oldest' })
    expect(items.map(({ act, actor, of, details }) => [act, actor, of === undefined ? 'before' : 'after', details?.count])).toEqual([
      ['key.create', 'local', 'before', undefined],
      ['key.create', 'local', 'after', undefined],
      ['key.use', id, 'before', 1],
      ['key.refuse', 'system', 'before', 1],
      ['key.revoke', 'local', 'before', undefined],
      ['key.revoke', 'local', 'after', undefined],
    ])
  })
})

describe('the comparison of hashes', () => {
  test('is right, and is that of the library made for it', () => {
    const { hash } = makeKey()
    const other = Uint8Array.from(hash)
    expect(isSameHash(hash, other)).toBe(true)
    other[31] = (other[31] ?? 0) ^ 1
    expect(isSameHash(hash, other)).toBe(false)
    expect(isSameHash(hash, hash.slice(1))).toBe(false)
    expect(readFileSync('src/tenants/key-format.ts', 'utf8')).toContain('timingSafeEqual')
  })

  test('takes as long for a key that shares all but its last letter as for one that is not there', async () => {
    await using rooms = await ownTenants()
    const good = await rooms.keys.create({}, operator)
    const near = good.secret.slice(0, -1) + (good.secret.endsWith('a') ? 'b' : 'a')
    const far = makeKey().secret
    const time = async (secret: string): Promise<number> => {
      const times: number[] = []
      for (let index = 0; index < 400; index++) {
        const started = performance.now()
        await refusalOf(rooms.keys.authenticate(secret, { source: `2001:db8:${index}::1` }))
        times.push(performance.now() - started)
      }
      return times.sort((a, b) => a - b)[200] ?? 0
    }
    await time(far)
    const [one, two] = [await time(near), await time(far)]
    // Looking for a row that is there and for one that is not differ by a little; nothing depends on how much of a secret is right.
    expect(Math.max(one, two) / Math.min(one, two)).toBeLessThan(2)
  })
})

describe('whoever guesses', () => {
  test('is made to wait after ten wrong keys, longer each time, and then even a good key is not looked at', async () => {
    let now = 0
    const throttle = new Throttle({ now: () => now })
    for (let index = 0; index < 10; index++) {
      expect(throttle.waitMs('192.0.2.7', undefined)).toBe(0)
      throttle.wrong('192.0.2.7', undefined)
    }
    expect(throttle.waitMs('192.0.2.7', undefined)).toBe(0)
    const waits = Array.from({ length: 12 }, () => {
      throttle.wrong('192.0.2.7', undefined)
      const wait = throttle.waitMs('192.0.2.7', 'a'.repeat(12))
      now += wait
      return wait
    })
    expect(waits.slice(0, 4)).toEqual([1000, 2000, 4000, 8000])
    expect(waits.at(-1)).toBe(300_000)
    expect(throttle.waitMs('192.0.2.8', undefined)).toBe(0)
  })

  test('does not lock out a neighbour at the same address whose key was right there', () => {
    let now = 0
    const throttle = new Throttle({ now: () => now })
    throttle.wrong('192.0.2.7', undefined)
    throttle.right('192.0.2.7', 'good')
    for (let index = 0; index < 50; index++) throttle.wrong('192.0.2.7', 'other')
    now += 1
    expect(throttle.waitMs('192.0.2.7', 'other')).toBeGreaterThan(0)
    expect(throttle.waitMs('192.0.2.7', 'good')).toBe(0)
    for (let index = 0; index < 5; index++) throttle.wrong('192.0.2.7', 'good')
    expect(throttle.waitMs('192.0.2.7', 'good')).toBeGreaterThan(0)
  })

  test('does not lock out a neighbour whose key was right before anyone guessed, however many there are', () => {
    const throttle = new Throttle({ now: () => 0 })
    const neighbours = Array.from({ length: 100 }, (_, index) => `good${index}`)
    for (const each of neighbours) throttle.right('192.0.2.7', each)
    for (let index = 0; index < 12; index++) throttle.wrong('192.0.2.7', 'other')
    expect(throttle.waitMs('192.0.2.7', 'other')).toBeGreaterThan(0)
    expect(neighbours.map((each) => throttle.waitMs('192.0.2.7', each))).toEqual(neighbours.map(() => 0))
    expect(throttle.waitMs('192.0.2.7', 'never')).toBeGreaterThan(0)
  })

  test('is one source for a whole network of IPv6, and for IPv4 written as IPv6', () => {
    const throttle = new Throttle({ now: () => 0 })
    for (let index = 0; index < 12; index++) throttle.wrong(`2001:db8:1:2:${index}::${index}`, undefined)
    expect(throttle.waitMs('2001:db8:1:2:ffff::9', undefined)).toBeGreaterThan(0)
    expect(throttle.waitMs('2001:db8:1:3::9', undefined)).toBe(0)
    for (let index = 0; index < 12; index++) throttle.wrong('::ffff:192.0.2.9', undefined)
    expect(throttle.waitMs('192.0.2.9', undefined)).toBeGreaterThan(0)
  })

  test('cannot fill the memory, nor be forgotten by coming from very many addresses', () => {
    const throttle = new Throttle({ mostSources: 100, now: () => 0 })
    for (let source = 0; source < 5000; source++) for (let index = 0; index < 12; index++) throttle.wrong(`198.51.${source >> 8}.${source & 255}`, undefined)
    expect(throttle.size).toBeLessThanOrEqual(100)
    expect(throttle.waitMs('198.51.0.0', undefined)).toBeGreaterThan(0)
    expect(throttle.waitMs('203.0.113.77', undefined)).toBeGreaterThan(0)
  })

  test('is refused by the door with when to try again, and let in after', async () => {
    await using rooms = await ownTenants()
    const { secret } = await rooms.keys.create({}, operator)
    for (let index = 0; index < 11; index++) await refusalOf(rooms.keys.authenticate('wrong', { source: '192.0.2.7' }))
    const refusal = await refusalOf(rooms.keys.authenticate(secret, { source: '192.0.2.7' }))
    expect(refusal).toMatchObject({ code: 'busy', retryable: true })
    expect(refusal.retryAfterMs).toBeGreaterThan(0)
    expect(refusal.retryAfterMs).toBeLessThanOrEqual(1000)
    expect(await rooms.keys.authenticate(secret, { source: '192.0.2.8' })).toMatchObject({ tenant: 'default' })
    await new Promise((resolve) => setTimeout(resolve, (refusal.retryAfterMs ?? 0) + 20))
    expect(await rooms.keys.authenticate(secret, { source: '192.0.2.7' })).toMatchObject({ tenant: 'default' })
  })
})

test('keys are random: a thousand of them have nothing in common', () => {
  const keys = Array.from({ length: 1000 }, () => makeKey())
  expect(new Set(keys.map(({ id }) => id)).size).toBe(1000)
  expect(new Set(keys.map(({ secret }) => secret.slice(17, 30))).size).toBe(1000)
  expect(keys.every(({ id, secret }) => keyIdIn(secret) === id)).toBe(true)
})
