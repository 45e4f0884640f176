import { describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import type { PlatformEvent } from '../../src/contract/events.js'
import type { Platform } from '../../src/contract/platform.js'
import { ownHouse, actorOf, plain } from './own-house.js'

const two = [{ id: 'one' }, { id: 'two' }]

/** Every call of a platform that names a sandbox, so that none is forgotten here: a new one fails the type. */
function callsOn(platform: Platform, id: string): Record<string, () => Promise<unknown>> {
  const files = platform.files.of(id)
  const none = (async function* (): AsyncGenerator<Uint8Array> {})()
  const first = async (some: AsyncIterable<unknown>): Promise<unknown> => some[Symbol.asyncIterator]().next()
  return {
    info: () => platform.info(id),
    start: () => platform.start(id, { command: ['true'] }),
    limit: () => platform.limit(id, { memory: '64m' }),
    usage: () => platform.usage(id),
    receipt: () => platform.receipt(id),
    'changes.written': () => platform.changes.written(id, '/workspace'),
    'code.languages': () => platform.code.languages(id),
    'code.execute': () => platform.code.execute(id, { code: '1', language: 'bash' }),
    'code.createContext': () => platform.code.createContext(id),
    'code.listContexts': () => platform.code.listContexts(id),
    'code.restartContext': () => platform.code.restartContext(id, 'c'.repeat(20)),
    'code.removeContext': () => platform.code.removeContext(id, 'c'.repeat(20)),
    'files.read': () => files.read('/a'),
    'files.write': () => files.write('/a', none),
    'files.list': () => first(files.list('/')),
    'files.stat': () => files.stat('/a'),
    'files.mkdir': () => files.mkdir('/a'),
    'files.move': () => files.move('/a', '/b'),
    'files.copy': () => files.copy('/a', '/b'),
    'files.remove': () => files.remove('/a'),
    'files.symlink': () => files.symlink('/a', '/b'),
    'files.chmod': () => files.chmod('/a', 0o600),
    'files.watch': () => files.watch('/'),
    'files.search': () => files.search('/', 'x'),
    'files.pack': () => files.pack('/'),
    'files.unpack': () => files.unpack('/', none),
    'life.pause': () => platform.life.pause(id),
    'life.resume': () => platform.life.resume(id),
    'life.extend': () => platform.life.extend(id, '5m'),
    'life.setLifetime': () => platform.life.setLifetime(id, '5m'),
    'life.events': () => first(platform.life.events(id)),
    'network.update': () => platform.network.update(id, { allow: [] }),
    'network.log': () => first(platform.network.log(id)),
    'network.summary': () => platform.network.summary(id),
    'ports.forward': () => platform.ports.forward(id, 80, { waitFor: 0 }),
    'ports.connect': () => platform.ports.connect(id, 80),
    'ports.waitFor': () => platform.ports.waitFor(id, 80, { timeout: 0 }),
    'processes.list': () => platform.processes.list(id),
    'processes.attach': () => platform.processes.attach(id, 1),
    'snapshots.take': () => platform.snapshots.take(id),
    'snapshots.diff': () => platform.snapshots.diff(id),
    'snapshots.export': () => platform.snapshots.export(id),
    'snapshots.fork': () => platform.snapshots.fork(id, 1),
  }
}

/** What is answered, without the id. */
async function answerOf(call: () => Promise<unknown>, id: string): Promise<string> {
  try {
    return `answered ${JSON.stringify(await call())}`
  } catch (error) {
    const { code, message, hint } = error as SandboxError
    return JSON.stringify({ code, message, hint }).replaceAll(id, 'ID')
  }
}

describe('a tenant', () => {
  test('sees its own sandboxes and no others, and is told whose they are', async () => {
    await using home = await ownHouse({ tenants: two })
    const [one, other] = [await home.as('one'), await home.as('two')]
    const mine = await one.create({ ...plain, agent: 'a' })
    const theirs = await other.create(plain)
    expect([mine.tenant, theirs.tenant]).toEqual(['one', 'two'])
    const seen = []
    for await (const { id } of one.list()) seen.push(id)
    expect(seen).toEqual([mine.id])
    expect(await one.closeAll()).toBe(1)
    expect((await other.info(theirs.id)).state).toBe('running')
    const all = []
    for await (const { id, tenant } of home.house.list()) all.push([id, tenant])
    expect(all).toEqual([[theirs.id, 'two']])
  })

  test('is answered of another’s sandbox as of one that never was, by every call there is', async () => {
    await using home = await ownHouse({ tenants: two })
    const [one, other] = [await home.as('one'), await home.as('two')]
    const { id: foreign } = await other.create(plain)
    const unknown = 'z'.repeat(20)
    const [calls, controls] = [callsOn(one, foreign), callsOn(one, unknown)]
    for (const [name, call] of Object.entries(calls)) {
      const answer = await answerOf(call, foreign)
      expect([name, answer]).toEqual([name, await answerOf(controls[name] as () => Promise<unknown>, unknown)])
      expect([name, answer]).toEqual([name, expect.stringContaining('not-found') as string])
    }
    await one.close(foreign)
    expect((await one.pools.release(foreign)).network).toBeUndefined()
    expect((await other.info(foreign)).state).toBe('running')
  })

  test('cannot set whose a sandbox is', async () => {
    await using home = await ownHouse({ tenants: two })
    const one = await home.as('one')
    await expect(one.create({ ...plain, tenant: 'two' } as object)).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('tenant') as string,
    })
    await expect(one.create(plain, { tenant: 'two' } as object)).rejects.toMatchObject({ code: 'invalid' })
    expect((await one.create({ ...plain, metadata: { tenant: 'two' } })).tenant).toBe('one')
  })

  test('keeps its snapshots for itself, names included', async () => {
    await using home = await ownHouse({ tenants: two })
    const [one, other] = [await home.as('one'), await home.as('two')]
    const { id } = await one.create(plain)
    const kept = await one.snapshots.take(id, { name: 'base' })
    expect((await one.snapshots.list()).map((each) => each.id)).toEqual([kept.id])
    expect(await other.snapshots.list()).toEqual([])
    expect(await other.snapshots.remove(kept.id)).toBe(false)
    await expect(other.create({ ...plain, from: 'base' })).rejects.toMatchObject({ code: 'not-found' })
    await expect(other.create({ ...plain, from: kept.id })).rejects.toMatchObject({ code: 'not-found' })
    expect((await one.create({ ...plain, from: 'base' })).spec.from).toBe(kept.id)
  })

  test('keeps its pools for itself', async () => {
    await using home = await ownHouse({ tenants: two })
    const [one, other] = [await home.as('one'), await home.as('two')]
    const pool = await one.pools.create(plain, { size: 1 })
    await expect(other.pools.status(pool.id)).rejects.toMatchObject({ code: 'not-found' })
    await expect(other.pools.acquire(pool.id)).rejects.toMatchObject({ code: 'not-found' })
    await other.pools.close(pool.id)
    expect((await one.pools.acquire(pool.id)).tenant).toBe('one')
  })

  test('is held to its ceiling, and to another from the next request on', async () => {
    await using home = await ownHouse({ tenants: [{ id: 'one', policy: { ceiling: { limits: { memory: '64m' } }, defaults: { limits: { memory: '32m' } } } }] })
    const one = await home.as('one')
    await expect(one.create({ ...plain, limits: { memory: '65m' } })).rejects.toMatchObject({ code: 'invalid' })
    await home.ledger.tenants.update('one', { policy: { ceiling: { lifetime: '1m' } } }, actorOf('default', 'admin'))
    const again = await home.as('one')
    await expect(again.create({ ...plain, lifetime: '2m' })).rejects.toMatchObject({ code: 'invalid' })
    expect((await again.create({ ...plain, lifetime: '1m' })).tenant).toBe('one')
  })
})

describe('a key', () => {
  test('that may only read is refused every act, before anything is done', async () => {
    await using home = await ownHouse({ tenants: two })
    const one = await home.as('one')
    const { id } = await one.create(plain)
    const reader = await home.as('one', 'read')
    const reading = new Set([
      'info',
      'usage',
      'receipt',
      'changes.written',
      'code.languages',
      'code.listContexts',
      'life.events',
      'network.log',
      'network.summary',
    ])
    for (const name of [
      'files.read',
      'files.list',
      'files.stat',
      'files.watch',
      'files.search',
      'files.pack',
      'ports.waitFor',
      'processes.list',
      'processes.attach',
      'snapshots.diff',
    ])
      reading.add(name)
    const acting = Object.entries(callsOn(reader, id)).filter(([name]) => !reading.has(name))
    for (const [name, call] of acting) expect([name, await answerOf(call, id)]).toEqual([name, expect.stringContaining('"forbidden"') as string])
    expect(acting.length).toBeGreaterThan(20)
    for (const act of [
      () => reader.create(plain),
      () => reader.closeAll(),
      () => reader.close(id),
      () => reader.pools.run({ spec: plain }, { command: ['true'] }),
    ])
      await expect(act()).rejects.toMatchObject({ code: 'forbidden' })
    expect((await reader.info(id)).state).toBe('running')
    const program = await one.start(id, { command: ['sleep', '60'], background: true })
    const seen = await reader.processes.attach(id, program.pid)
    await expect(seen.kill()).rejects.toMatchObject({ code: 'forbidden' })
    await expect(seen.write(new Uint8Array(1))).rejects.toMatchObject({ code: 'forbidden' })
    await program.kill()
  })

  test('of one tenant opens no other’s platform, unless it is an admin’s', async () => {
    await using home = await ownHouse({ tenants: two })
    await expect(home.house.platformFor(actorOf('one'), { tenant: 'two' })).rejects.toMatchObject({ code: 'forbidden' })
    const admin = await home.house.platformFor(actorOf('one', 'admin'), { tenant: 'two', request: 'r1' })
    const { id, tenant } = await admin.create(plain)
    expect(tenant).toBe('two')
    const [begun] = await home.acts({ sandbox: id })
    expect(begun).toMatchObject({ actor: 'key-of-one', tenant: 'two', request: 'r1', of: expect.any(Number) as number })
    await expect(home.house.platformFor(actorOf('one', 'admin'), { tenant: 'three' })).rejects.toMatchObject({ code: 'not-found' })
  })
})

describe('quotas of a house', () => {
  const request = { ...plain, limits: { memory: '64m', cpus: 0.1, disk: '1m' } }

  test('hold under a race of creates, and each sandbox that ends gives back what it had', async () => {
    await using home = await ownHouse({ tenants: [{ id: 'one', quotas: { sandboxes: 3 } }] })
    const one = await home.as('one')
    const made = await Promise.allSettled(Array.from({ length: 20 }, () => one.create(plain)))
    const infos = made.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    expect(infos).toHaveLength(3)
    const refused = made.flatMap((each) => (each.status === 'rejected' ? [each.reason as SandboxError] : []))
    expect(refused.every(({ code, details }) => code === 'quota' && details?.quota === 'sandboxes')).toBe(true)
    await one.close(infos[0]?.id ?? '')
    await expect.poll(async () => (await home.ledger.quotas.usage('one')).sandboxes.used).toBe(2)
    await one.create(plain)
    await one.closeAll()
    await expect.poll(async () => (await home.ledger.quotas.usage('one')).sandboxes.used).toBe(0)
    expect(await home.ledger.quotas.usage('one')).toMatchObject({ memory: { used: 0 }, cpus: { used: 0 }, disk: { used: 0 }, createsPerMinute: { used: 4 } })
  })

  test('count single runs until they are released, forks, pools and raised limits', async () => {
    await using home = await ownHouse({ tenants: [{ id: 'one', quotas: { sandboxes: 2 } }] })
    const one = await home.as('one')
    const shot = await one.pools.run({ spec: plain }, { command: ['true'], output: {} })
    await shot.program.ended
    expect((await home.ledger.quotas.usage('one')).sandboxes.used).toBe(1)
    await shot.release()
    expect((await home.ledger.quotas.usage('one')).sandboxes.used).toBe(0)
    const { id } = await one.create(plain)
    await expect(one.snapshots.fork(id, 2)).rejects.toMatchObject({ code: 'quota' })
    const [fork] = await one.snapshots.fork(id, 1)
    await expect(one.pools.create(plain, { size: 1 })).rejects.toMatchObject({ code: 'quota' })
    await one.close(fork?.id ?? '')
    await expect.poll(async () => (await home.ledger.quotas.usage('one')).sandboxes.used).toBe(1)
    const pool = await one.pools.create(plain, { size: 1 })
    await expect(one.pools.acquire(pool.id)).rejects.toMatchObject({ code: 'quota' })
    await one.pools.close(pool.id)
    expect((await home.ledger.quotas.usage('one')).sandboxes.used).toBe(1)
  })

  test('that are not enough for what failed to be made are whole again', async () => {
    await using home = await ownHouse({ tenants: [{ id: 'one', quotas: { sandboxes: 1 } }] })
    const one = await home.as('one')
    for (let index = 0; index < 5; index++) await expect(one.create({ ...plain, template: 'nothing-here' })).rejects.toBeInstanceOf(SandboxError)
    expect((await home.ledger.quotas.usage('one')).sandboxes.used).toBe(0)
    expect(request.limits.memory).toBe('64m')
    await one.create(plain)
  })
})

describe('events of a house', () => {
  test('tell of each sandbox of whom is listened to, from its birth to its end', async () => {
    await using home = await ownHouse({ tenants: two })
    const told: PlatformEvent[] = []
    const listening = (async () => {
      for await (const event of home.house.events.listen({ tenant: 'one', types: ['created', 'closed'] })) {
        told.push(event)
        if (event.type === 'closed') return
      }
    })()
    const [one, other] = [await home.as('one'), await home.as('two')]
    await other.create(plain)
    const { id } = await one.create({ ...plain, agent: 'a' })
    await one.close(id)
    await listening
    const whose = { tenant: 'one', sandbox: id, agent: 'a' }
    expect(told).toMatchObject([
      { ...whose, type: 'created' },
      { ...whose, type: 'closed', code: 'closed' },
    ])
  })
})
