import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import type { NetworkApproval, NetworkFacts } from '../../src/contract/network.js'
import { allOf, closing, denied, echo, openGate, permitted, rulesOf, serve, serveNames } from './gate-harness.js'

async function exchange(permit: Awaited<ReturnType<typeof permitted>>, text: string): Promise<string> {
  const { stream } = await permit.dial()
  stream.write(text)
  const [answer] = (await once(stream, 'data')) as [Buffer]
  return answer.toString()
}

describe('a name', () => {
  test('is resolved once, checked, pinned and dialled; what passes is counted and written down', async () => {
    await using server = await serve(echo)
    await using names = await serveNames({ 'api.example': ['127.0.0.1'] })
    await using opened = openGate({ rules: rulesOf({ allow: [`api.example:${server.port}`] }), resolver: names.resolver })
    const permit = permitted(await opened.ask('API.example.', server.port))
    expect({ address: permit.address, host: permit.hostText, rule: permit.rule }).toEqual({
      address: '127.0.0.1',
      host: 'api.example',
      rule: `allow api.example:${server.port}`,
    })
    expect(await exchange(permit, 'hello')).toBe('hello')
    permit.finish({ status: 200 })
    permit.finish({ status: 500 })
    expect(names.asked.toSorted()).toEqual(['a api.example', 'aaaa api.example'])
    const { latest, ...totals } = opened.gate.summary()
    expect(latest).toEqual([
      {
        time: expect.stringMatching(/^\d{4}-.*Z$/) as string,
        sandbox: 'abc',
        door: 'proxy',
        host: 'api.example',
        address: '127.0.0.1',
        port: server.port,
        scheme: 'tcp',
        status: 200,
        bytesUp: 5,
        bytesDown: 5,
        durationMs: expect.any(Number) as number,
        verdict: 'allowed',
        rule: `allow api.example:${server.port}`,
        reason: '',
      },
    ])
    expect(totals).toEqual({
      connections: 1,
      bytesUp: 5,
      bytesDown: 5,
      byVerdict: { allowed: 1, denied: 0, failed: 0 },
      byHost: { 'api.example': { connections: 1, bytesUp: 5, bytesDown: 5, allowed: 1, denied: 0, failed: 0 } },
      byMethod: {},
      byStatus: { 200: 1 },
    })
  })

  test('that is not allowed is not resolved', async () => {
    await using names = await serveNames({ 'data.attacker.example': ['127.0.0.1'] })
    await using opened = openGate({ rules: rulesOf({ allow: ['api.example'] }), resolver: names.resolver })
    const denial = denied(await opened.ask('data.attacker.example', 443))
    expect(denial).toEqual({
      allowed: false,
      code: 'not-allowed',
      status: 403,
      reason: 'no rule allows it',
      wouldAllow: 'data.attacker.example',
      message: "data.attacker.example port 443 is denied: no rule allows it; network.allow: ['data.attacker.example'] would allow it",
    })
    expect(names.asked).toEqual([])
    expect(opened.gate.summary()).toMatchObject({ byVerdict: { denied: 1 }, latest: [{ verdict: 'denied', status: 403, reason: 'no rule allows it' }] })
  })

  test('with a public and a private address leads to the public one only', async () => {
    await using refused = await serve(echo, '127.0.0.9')
    await using server = await serve(echo, '127.0.0.1', refused.port)
    // Of these two only one is named, as public ones are.
    await using names = await serveNames({ 'mixed.example': ['127.0.0.9', '127.0.0.1'] })
    await using opened = openGate({ rules: rulesOf({ allow: ['*', `*:${server.port}`] }, ['127.0.0.1/32']), resolver: names.resolver })
    const permit = permitted(await opened.ask('mixed.example', server.port))
    expect(permit.address).toBe('127.0.0.1')
    expect(await exchange(permit, 'x')).toBe('x')
    permit.finish()
    expect([server.count, refused.count]).toEqual([1, 0])
  })

  test('that leads only to private addresses is denied', async () => {
    await using names = await serveNames({ 'in.example': ['10.0.0.1', '169.254.169.254'], 'six.example': ['fd00::1'], 'mapped.example': ['::ffff:10.0.0.1'] })
    await using opened = openGate({ rules: rulesOf({ allow: ['*'] }, []), resolver: names.resolver })
    expect(denied(await opened.ask('in.example', 80))).toMatchObject({ code: 'private', reason: 'it leads to 10.0.0.1, which is private' })
    expect(denied(await opened.ask('six.example', 80)).message).toContain("only an operator's policy can allow it")
    expect(denied(await opened.ask('mapped.example', 80)).code).toBe('private')
  })

  test('that changes its address between two lookups is dialled where it was checked', async () => {
    let lookups = 0
    await using server = await serve(echo)
    await using names = await serveNames((name) => (name === 'rebind.example' ? [++lookups <= 2 ? '127.0.0.1' : '10.0.0.1'] : undefined))
    await using opened = openGate({ rules: rulesOf({ allow: [`*:${server.port}`] }), resolver: names.resolver })
    const permit = permitted(await opened.ask('rebind.example', server.port))
    expect(await exchange(permit, 'x')).toBe('x')
    expect(names.asked.length).toBe(2)
    permit.finish()
    expect(denied(await opened.ask('rebind.example', server.port)).code).toBe('private')
  })

  test.each([
    ['unknown.example', 'there is no address for unknown.example'],
    ['broken.example', 'broken.example could not be resolved (EREFUSED)'],
    ['silent.example', 'silent.example could not be resolved'],
    ['empty.example', 'there is no address for empty.example'],
  ])('%s, which nobody can resolve, is denied', async (name, reason) => {
    await using names = await serveNames({ 'broken.example': 'failure', 'silent.example': 'silence', 'empty.example': [] }, 200)
    await using opened = openGate({ rules: rulesOf({ allow: ['*'] }), resolver: names.resolver })
    const denial = denied(await opened.ask(name, 443))
    expect(denial).toMatchObject({ code: 'unresolved', status: 502 })
    expect(denial.reason).toContain(reason)
    expect(opened.gate.summary().byVerdict).toEqual({ allowed: 0, denied: 0, failed: 1 })
  })

  test('whose address is blocked is denied', async () => {
    await using names = await serveNames({ 'a.example': ['127.0.0.1'] })
    await using opened = openGate({ rules: rulesOf({ allow: ['*'], block: [{ cidr: '127.0.0.0/30' }] }), resolver: names.resolver })
    expect(denied(await opened.ask('a.example', 443))).toMatchObject({ code: 'blocked', reason: "it leads to 127.0.0.1, which is blocked by '127.0.0.0/30'" })
  })
})

test("an address of the host's own is denied even if it is public", async () => {
  await using opened = openGate({ rules: rulesOf({ allow: ['*'] }, []), isOwn: ({ text }) => text === '8.8.8.8' })
  expect(denied(await opened.ask('8.8.8.8', 443))).toMatchObject({ code: 'private', reason: '8.8.8.8 is of the host itself' })
  await using named = openGate({ rules: rulesOf({ allow: ['*'] }, ['8.8.8.8/32']), isOwn: ({ text }) => text === '8.8.8.8' })
  const permit = permitted(await named.ask('8.8.8.8', 443))
  permit.finish()
})

test('what cannot be dialled fails with a reason, and gives its place back', async () => {
  const server = await serve(echo)
  const { port } = server
  await server[Symbol.asyncDispose]()
  await using opened = openGate({ rules: rulesOf({ allow: [`127.0.0.1:${port}`], maxConnections: 1 }), timings: { placeMs: 50 } })
  for (let round = 0; round < 3; round++) {
    const permit = permitted(await opened.ask('127.0.0.1', port))
    await expect(permit.dial()).rejects.toThrow(`127.0.0.1 port ${port}: nobody listens there`)
    permit.finish({ verdict: 'failed', reason: 'nobody listens there' })
  }
  expect(opened.gate.summary().byVerdict).toEqual({ allowed: 0, denied: 0, failed: 3 })
})

describe('whoever may approve', () => {
  const facts = { sandbox: 'abc', door: 'proxy', host: 'new.example', scheme: 'tcp' } as const

  async function opened(answer: (facts: NetworkFacts) => Promise<NetworkApproval>, approvalMs = 2000) {
    const server = await serve(echo)
    const names = await serveNames({ 'new.example': ['127.0.0.1'] })
    const gate = openGate({ rules: rulesOf({ allow: [] }), resolver: names.resolver, onRequest: answer, timings: { approvalMs } })
    return {
      server,
      names,
      ...gate,
      [Symbol.asyncDispose]: async () => {
        await gate[Symbol.asyncDispose]()
        await server[Symbol.asyncDispose]()
        await names[Symbol.asyncDispose]()
      },
    }
  }

  test('is asked with what is known, before anything is resolved', async () => {
    const asked: NetworkFacts[] = []
    await using world = await opened(async (given) => {
      asked.push(given)
      return 'deny'
    })
    const denial = denied(await world.ask('new.example', 443))
    expect(denial).toMatchObject({ code: 'declined', reason: 'no rule allows it, and it was declined', wouldAllow: 'new.example' })
    expect(asked).toEqual([{ ...facts, port: 443 }])
    expect(world.names.asked).toEqual([])
  })

  test('approves once, and is asked again', async () => {
    let count = 0
    await using world = await opened(async () => (++count === 1 ? 'once' : 'deny'))
    const permit = permitted(await world.ask('new.example', world.server.port))
    expect(permit.rule).toBe('approval')
    expect(await exchange(permit, 'x')).toBe('x')
    permit.finish()
    expect(denied(await world.ask('new.example', world.server.port)).code).toBe('declined')
    expect(count).toBe(2)
  })

  test('approves for the sandbox, until the rules are replaced', async () => {
    let count = 0
    await using world = await opened(async () => {
      count++
      return 'sandbox'
    })
    const { port } = world.server
    const [one, two] = await Promise.all([world.ask('new.example', port), world.ask('NEW.example', port)])
    permitted(one).finish()
    permitted(two).finish()
    expect(count).toBe(1)
    world.gate.update(rulesOf({ allow: [] }))
    permitted(await world.ask('new.example', port)).finish()
    expect(count).toBe(2)
  })

  test.each<readonly [string, () => Promise<NetworkApproval>, string]>([
    ['late', () => new Promise(() => undefined), 'nobody answered in time'],
    ['wrongly', () => Promise.resolve('yes' as NetworkApproval), 'the answer could not be understood'],
    ['by throwing', () => Promise.reject(new Error('secret of the host')), 'asking for it failed'],
  ])('and answers %s, has approved nothing', async (_how, answer, why) => {
    await using world = await opened(answer, 50)
    expect(denied(await world.ask('new.example', 443)).reason).toBe(`no rule allows it, and ${why}`)
  })

  test('is not asked about what is blocked, private or unreadable', async () => {
    let count = 0
    const onRequest = async (): Promise<NetworkApproval> => {
      count++
      return 'sandbox'
    }
    await using gate = openGate({ rules: rulesOf({ block: ['bad.example'] }, []), onRequest })
    expect([denied(await gate.ask('bad.example', 443)).code, denied(await gate.ask('127.0.0.1', 80)).code, denied(await gate.ask('0x7f.1', 80)).code]).toEqual([
      'blocked',
      'private',
      'unparsable',
    ])
    expect(count).toBe(0)
  })
})

describe('new rules', () => {
  test('end what they no longer allow, and leave the rest', async () => {
    await using server = await serve(echo)
    await using names = await serveNames({ 'a.example': ['127.0.0.1'], 'b.example': ['127.0.0.1'] })
    const both = [`a.example:${server.port}`, `b.example:${server.port}`]
    await using opened = openGate({ rules: rulesOf({ allow: both }), resolver: names.resolver })
    const [a, b] = [permitted(await opened.ask('a.example', server.port)), permitted(await opened.ask('b.example', server.port))]
    const [first, second] = [await a.dial(), await b.dial()]
    expect(await exchange(a, '1')).toBe('1')
    const closed = closing(first.stream)
    opened.gate.update(rulesOf({ allow: both.slice(1) }))
    await closed
    expect(a.signal.reason).toMatchObject({ code: 'not-allowed', message: 'the rules were replaced: no rule allows it' })
    expect([first.isOpen, second.isOpen]).toEqual([false, true])
    expect(await exchange(b, '2')).toBe('2')
    a.finish()
    b.finish()
    expect(opened.gate.summary().latest.map(({ host, verdict, reason }) => [host, verdict, reason])).toEqual([
      ['a.example', 'denied', 'the rules were replaced: no rule allows it'],
      ['b.example', 'allowed', ''],
    ])
  })

  test('end a connection that waits to be used again, and one that is about to be dialled', async () => {
    await using server = await serve(echo)
    const allow = [`127.0.0.1:${server.port}`]
    await using opened = openGate({ rules: rulesOf({ allow }) })
    const used = permitted(await opened.ask('127.0.0.1', server.port))
    const kept = await used.dial()
    used.finish()
    const waiting = permitted(await opened.ask('127.0.0.1', server.port))
    opened.gate.update(rulesOf({ allow: [] }))
    expect(kept.isOpen).toBe(false)
    await expect(waiting.dial()).rejects.toThrow('the rules were replaced')
    waiting.finish()
    expect(server.count).toBe(1)
  })

  test('hold for an attempt that waited while they came', async () => {
    let answer: (addresses: never[]) => void = () => undefined
    const resolver = { resolve: () => new Promise<never[]>((resolve) => (answer = resolve)) }
    await using opened = openGate({ rules: rulesOf({ allow: ['a.example'] }), resolver })
    const asking = opened.ask('a.example', 443)
    await new Promise((resolve) => setImmediate(resolve))
    opened.gate.update(rulesOf({ allow: [] }))
    answer([{ family: 4, bits: 0x7f00_0001n, text: '127.0.0.1' } as never])
    expect(denied(await asking).code).toBe('not-allowed')
  })
})

test('a request goes over an earlier connection only to the same host and port', async () => {
  await using server = await serve(echo)
  await using names = await serveNames({ 'a.example': ['127.0.0.1'], 'b.example': ['127.0.0.1'] })
  await using opened = openGate({
    rules: rulesOf({ allow: [{ host: 'a.example', ports: [server.port], methods: ['GET'] }, `b.example:${server.port}`] }),
    resolver: names.resolver,
  })
  const request = { door: 'proxy', port: server.port, scheme: 'https', path: '/x?token=1' } as const
  const first = permitted(await opened.gate.ask({ ...request, host: 'a.example', method: 'GET' }))
  const over = await first.dial()
  first.finish({ status: 200 })
  const again = permitted(await opened.gate.ask({ ...request, host: 'a.example', method: 'GET', over }))
  expect(await again.dial()).toBe(over)
  again.finish()
  const other = permitted(await opened.gate.ask({ ...request, host: 'b.example', method: 'GET', over }))
  expect(await other.dial()).not.toBe(over)
  other.finish()
  expect(denied(await opened.gate.ask({ ...request, host: 'a.example', method: 'POST', over })).code).toBe('method')
  expect(denied(await opened.ask('a.example', server.port)).code).toBe('opaque')
  expect(names.asked.filter((question) => question === 'a a.example').length).toBe(1)
  expect(opened.gate.summary()).toMatchObject({ byMethod: { GET: 3, POST: 1 }, latest: [{ path: '/x' }, {}, {}, { verdict: 'denied' }, {}] })
})

test('the end of a sandbox ends its connections, its questions and its log', async () => {
  await using server = await serve(echo)
  await using opened = openGate({ rules: rulesOf({ allow: [`127.0.0.1:${server.port}`] }) })
  const records = allOf(opened.gate.log())
  const permit = permitted(await opened.ask('127.0.0.1', server.port))
  const { stream } = await permit.dial()
  const closed = closing(stream)
  await opened.gate.close()
  await closed
  expect(permit.signal.aborted).toBe(true)
  expect((await records).map(({ verdict, reason }) => [verdict, reason])).toEqual([['failed', 'the sandbox was closed']])
  expect(denied(await opened.ask('127.0.0.1', server.port)).code).toBe('closed')
  expect(opened.gate.enter()).toBeUndefined()
  await opened.gate.close()
})

test.each([0, -1, 65_536, 1.5, Number.NaN])('port %d is none, whoever would approve it', async (port) => {
  await using opened = openGate({ rules: rulesOf({}), onRequest: () => Promise.resolve('sandbox') })
  expect(denied(await opened.ask('127.0.0.1', port))).toMatchObject({ code: 'unparsable', reason: 'there is no such port' })
})
