import { describe, expect, test } from 'vitest'
import type { PlatformEvent } from '../../src/contract/events.js'
import type { AuditEntry, AuditRecord, AuditTrail } from '../../src/contract/audit.js'
import { canonicalJson } from '../../src/contract/canonical-json.js'
import type { SandboxError } from '../../src/contract/errors.js'
import type { Platform } from '../../src/contract/platform.js'
import { auditedPlatform } from '../../src/audit/index.js'
import { sha256 } from '../../src/audit/chain.js'
import { actorOf, ownHouse, plain } from '../tenants/own-house.js'

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text)
}

async function readAll(some: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of some);
}

/** Acts with both their records. */
async function settled(home: Awaited<ReturnType<typeof ownHouse>>, act: string): Promise<readonly [AuditRecord, AuditRecord]> {
  const find = async (): Promise<readonly AuditRecord[]> => (await home.acts()).filter((record) => record.act === act)
  await expect.poll(async () => (await find()).length).toBeGreaterThanOrEqual(2)
  const [begun, ended] = await find()
  return [begun as AuditRecord, ended as AuditRecord]
}

describe('an act', () => {
  test('is in the trail before its effect, and with its outcome after', async () => {
    await using home = await ownHouse({ tenants: [{ id: 'one' }] })
    const one = await home.house.platformFor(actorOf('one'), { request: 'r-1' })
    const { id } = await one.create({ ...plain, agent: 'reviewer', env: { TOKEN: 'plain words' }, metadata: { pr: '1' } })
    const program = await one.start(id, { command: 'echo $((6*7))', output: {} })
    await readAll(program.output)
    await program.ended
    const [begun, ended] = await settled(home, 'run.start')
    expect(begun).toMatchObject({
      actor: 'key-of-one',
      tenant: 'one',
      agent: 'reviewer',
      sandbox: id,
      request: 'r-1',
      details: { command: { text: 'echo $((6*7))' } },
    })
    expect(begun).not.toHaveProperty('outcome')
    expect(ended).toMatchObject({ of: begun.number, outcome: { kind: 'ok' }, details: { outcome: { kind: 'exited', code: 0 } } })
    const [asked, born] = await settled(home, 'sandbox.create')
    expect(asked.details?.spec).toMatchObject({ agent: 'reviewer', env: ['TOKEN'], metadata: { pr: '1' } })
    expect(born).toMatchObject({ of: asked.number, sandbox: id, outcome: { kind: 'ok' }, details: { driver: 'fake' } })
    const receipt = await one.receipt(id)
    expect((await home.acts()).at(-1)).toMatchObject({ act: 'receipt.issue', sandbox: id, receipt: sha256(canonicalJson(receipt)) })
    expect(receipt.sandbox).toEqual({ id, tenant: 'one', agent: 'reviewer' })
    // The same command in both.
    expect(receipt.runs[0]?.commandHash).toBe((begun.details?.command as { sha256: string }).sha256)
  })

  test('that fails is there with why', async () => {
    await using home = await ownHouse({ tenants: [{ id: 'one', quotas: { sandboxes: 0 } }] })
    const one = await home.as('one')
    await expect(one.create(plain)).rejects.toMatchObject({ code: 'quota' })
    const [, ended] = await settled(home, 'sandbox.create')
    expect(ended.outcome).toMatchObject({ kind: 'error', code: 'quota' })
  })

  test('by any facet is there, with what it was done to', async () => {
    await using home = await ownHouse({ tenants: [{ id: 'one' }] })
    const one = await home.as('one')
    const { id } = await one.create(plain)
    const files = one.files.of(id)
    await files.write('notes.txt', bytesOf('hello'))
    await files.mkdir('folder')
    await files.copy('notes.txt', 'folder/copy.txt')
    await files.move('folder/copy.txt', 'folder/moved.txt')
    await files.symlink('notes.txt', 'link')
    await files.chmod('notes.txt', 0o600)
    await files.remove('link')
    const kept = await one.snapshots.take(id, { name: 'n' })
    await readAll(await one.snapshots.export(id))
    const [fork] = await one.snapshots.fork(id, 1)
    await one.life.extend(id, '6m')
    await one.life.setLifetime(id, '5m')
    const process = await one.start(id, { command: ['sleep', '60'], background: true })
    await (await one.processes.attach(id, process.pid)).signal('SIGTERM')
    await process.ended
    await one.snapshots.remove('n')
    const pool = await one.pools.create(plain, { size: 0 })
    await one.pools.close(pool.id)
    await one.close(fork?.id ?? '')
    await one.closeAll()
    await expect.poll(async () => (await home.acts()).filter(({ act }) => act === 'sandbox.end').length).toBe(2)
    const acts = await home.acts()
    const begun = acts.filter(({ of, actor }) => of === undefined && actor !== 'system').map(({ act }) => act)
    expect(begun).toEqual([
      ...['sandbox.create', 'file.write', 'file.mkdir', 'file.copy', 'file.move', 'file.symlink', 'file.chmod', 'file.remove'],
      ...['snapshot.take', 'snapshot.export', 'snapshot.fork', 'sandbox.lifetime', 'sandbox.lifetime', 'run.start', 'run.signal'],
      ...['snapshot.remove', 'pool.create', 'pool.close', 'sandbox.close', 'sandbox.close'],
    ])
    const written = acts.find(({ act, of }) => act === 'file.write' && of !== undefined)
    expect(written?.details).toEqual({ bytes: 5, sha256: sha256('hello') })
    expect(acts.find(({ act, of }) => act === 'snapshot.take' && of !== undefined)?.details).toEqual({ id: kept.id })
    // Every act that was begun is over.
    const over = new Set(acts.map(({ of }) => of))
    expect(acts.filter(({ number, of, outcome, actor }) => of === undefined && outcome === undefined && actor !== 'system' && !over.has(number))).toEqual([])
  })

  test('is not done when it cannot be written down, but closing is', async () => {
    await using home = await ownHouse({ tenants: [{ id: 'one' }] })
    const direct = await home.as('one')
    const { id } = await direct.create(plain)
    const calls: string[] = []
    const { SandboxError: Refusal } = await import('../../src/contract/errors.js')
    const refuse = (): Promise<never> => Promise.reject(new Refusal('full', 'no room'))
    const full: AuditTrail = Object.assign(Object.create(home.ledger.trail) as AuditTrail, {
      append: refuse,
      tell: (entry: { act: string }) => {
        calls.push(entry.act)
        return new Promise<never>(() => undefined)
      },
    })
    const settings = { code: 'full', env: 'names', receipts: 'asked' } as const
    const platform: Platform = auditedPlatform(direct, { trail: full, actor: actorOf('one'), tenant: 'one', settings, agentOf: () => undefined })
    const refused = [
      () => platform.create(plain),
      () => platform.start(id, { command: ['touch', 'made'] }),
      () => platform.files.of(id).write('made', bytesOf('x')),
      () => platform.pools.run({ spec: plain }, { command: ['true'] }),
      () => platform.code.execute(id, { code: 'touch made', language: 'bash' }),
    ]
    for (const act of refused) await expect(act()).rejects.toMatchObject({ code: 'full' } satisfies Partial<SandboxError>)
    expect(await platform.files.of(id).stat('made')).toBeNull()
    await platform.close(id)
    await expect(direct.info(id)).rejects.toMatchObject({ code: 'closed' })
    expect(calls).toEqual(['sandbox.close'])
  })

  test('that is a run of its own is in the trail before anything of it runs, though what it runs in is found meanwhile', async () => {
    await using home = await ownHouse({ tenants: [{ id: 'one' }] })
    const direct = await home.as('one')
    const { trail } = home.ledger
    const order: string[] = []
    let isAsked = (): void => undefined
    const asked = new Promise<void>((resolve) => (isAsked = resolve))
    const slow: AuditTrail = Object.assign(Object.create(trail) as AuditTrail, {
      append: async (entry: AuditEntry) => {
        await asked
        const appended = await trail.append(entry)
        order.push('written')
        return appended
      },
      finish: trail.finish.bind(trail),
    })
    const run: Platform['pools']['run'] = async (place, request, { after, ...rest } = {}) => {
      order.push('asked for')
      isAsked()
      await after
      order.push('begins')
      return direct.pools.run(place, request, rest)
    }
    const settings = { code: 'full', env: 'names', receipts: 'asked' } as const
    const below: Platform = { ...direct, pools: { ...direct.pools, run } }
    const platform = auditedPlatform(below, { trail: slow, actor: actorOf('one'), tenant: 'one', settings, agentOf: () => undefined })
    const shot = await platform.pools.run({ spec: plain }, { command: ['true'], output: {} })
    await readAll(shot.program.output)
    await shot.release()
    expect(order).toEqual(['asked for', 'written', 'begins'])
  })

  test.each(['kept', 'lost'] as const)(
    'that is a confined run of its own begins when it is written, and nobody is told of it before that is on the disk: %s',
    async (disk) => {
      await using home = await ownHouse({ tenants: [{ id: 'one' }] })
      const direct = await home.as('one')
      const { trail } = home.ledger
      const order: string[] = []
      let hasBegun = (): void => undefined
      const begun = new Promise<void>((resolve) => (hasBegun = resolve))
      const slow: AuditTrail = Object.assign(Object.create(trail) as AuditTrail, {
        append: async (entry: AuditEntry, { onWritten }: { onWritten?: () => void } = {}) => {
          const appended = await trail.append(entry)
          order.push('written')
          onWritten?.()
          await begun
          order.push('on the disk')
          if (disk === 'lost') throw new Error('the disk broke')
          return appended
        },
        finish: trail.finish.bind(trail),
      })
      const run: Platform['pools']['run'] = async (place, request, { after, afterIfConfined, ...rest } = {}) => {
        after?.catch(() => undefined)
        await afterIfConfined
        const shot = await direct.pools.run(place, request, rest)
        order.push('begins')
        hasBegun()
        return {
          ...shot,
          release: () => {
            order.push('released')
            return shot.release()
          },
        }
      }
      const settings = { code: 'full', env: 'names', receipts: 'asked' } as const
      const below: Platform = { ...direct, pools: { ...direct.pools, run } }
      const platform = auditedPlatform(below, { trail: slow, actor: actorOf('one'), tenant: 'one', settings, agentOf: () => undefined })
      const running = platform.pools.run({ spec: plain }, { command: ['sleep', '60'], output: {} })
      if (disk === 'lost') await expect(running).rejects.toThrow('the disk broke')
      else {
        const shot = await running
        order.push('told')
        await shot.release()
      }
      expect(order).toEqual(['written', 'begins', 'on the disk', ...(disk === 'kept' ? ['told'] : []), 'released'])
    },
  )

  test('of a tenant that wants only hashes has neither command nor code', async () => {
    await using home = await ownHouse({ tenants: [{ id: 'one', audit: { code: 'hash', receipts: 'always' } }] })
    const one = await home.as('one')
    const { id } = await one.create(plain)
    const program = await one.start(id, { command: 'echo very-own-words', output: {} })
    await readAll(program.output)
    await program.ended
    await one.close(id)
    await expect.poll(async () => (await home.acts({ act: 'sandbox.end' })).length).toBe(1)
    const acts = await home.acts()
    expect(JSON.stringify(acts)).not.toContain('very-own-words')
    expect(acts.find(({ act }) => act === 'run.start')?.details).toEqual({ command: { sha256: sha256(canonicalJson('echo very-own-words')) }, output: {} })
    expect(acts.find(({ act, of }) => act === 'sandbox.close' && of !== undefined)?.receipt).toMatch(/^[0-9a-f]{64}$/)
  })
})

describe('a server that begins', () => {
  test('tells of each sandbox that the one before it did not close, once, in the trail and to whoever listens', async () => {
    await using first = await ownHouse({ tenants: [{ id: 'one' }] })
    const one = await first.as('one')
    const { id } = await one.create({ ...plain, agent: 'a' })
    const closed = await one.create(plain)
    await one.close(closed.id)
    await expect.poll(async () => (await first.acts({ act: 'sandbox.end' })).length).toBe(1)
    // The first one is not closed: this is what a killed server leaves.
    const { openHouse, openLedger } = await import('../../src/ledger.js')
    const { createFakeDriver } = await import('../../src/drivers/fake/driver.js')
    await using ledger = await openLedger({ folder: first.folder, leastFreeBytes: 0 })
    for (const expected of [[id], []]) {
      await using house = await openHouse(ledger, { drivers: [createFakeDriver()] })
      const heard: string[] = []
      const listening = house.events.listen({ after: 'oldest', types: ['lost'] })[Symbol.asyncIterator]()
      for (const _ of expected) {
        const { value } = (await listening.next()) as { readonly value?: PlatformEvent }
        if (value?.type === 'lost') heard.push(value.sandbox)
      }
      expect(heard).toEqual(expected)
    }
    const lost = await first.acts({ act: 'sandbox.lost' })
    expect(lost.map(({ sandbox, tenant, agent, details }) => ({ sandbox, tenant, agent, details }))).toEqual([
      { sandbox: id, tenant: 'one', agent: 'a', details: { reason: 'the server ended without closing it; nothing of it is left' } },
    ])
  })
})
