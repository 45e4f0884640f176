import { once, setMaxListeners } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Bucket, Budget } from '../../src/egress/buckets.js'
import type { Clock } from '../../src/egress/clock.js'
import type { Permit, Upstream } from '../../src/egress/gate-types.js'
import { closing, denied, echo, openGate, permitted, rulesOf, serve } from './gate-harness.js'

/** Sleeping takes no time, and is all that makes it pass. */
class QuickClock implements Clock {
  time = 0
  now = (): number => this.time
  sleep = async (ms: number): Promise<void> => {
    this.time += ms
    await turn()
  }
}

describe('a bucket', () => {
  test('lets through no more than its rate and what it holds, however it is taken from', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1024, max: 10_000_000 }), fc.array(fc.integer({ min: 1, max: 65_536 }), { minLength: 1, maxLength: 50 }), (rate, takes) => {
        const clock = new QuickClock()
        const bucket = new Bucket(rate, clock)
        let total = 0
        for (const bytes of takes) {
          clock.time += bucket.take(bytes)
          total += bytes
        }
        // A wait that is not worth a timer is owed.
        expect(total).toBeLessThanOrEqual(rate / 10 + (clock.time * rate) / 1000 + (2 * rate) / 1000 + 1)
      }),
    )
  })

  test('is full again after a pause, and no fuller', () => {
    const clock = new QuickClock()
    const bucket = new Bucket(10_000, clock)
    expect(bucket.take(1000)).toBe(0)
    clock.time += 60_000
    expect([bucket.take(1000), bucket.take(1000)]).toEqual([0, 100])
  })

  test('that is shared makes each wait in turn', () => {
    const bucket = new Bucket(1000, new QuickClock())
    expect([bucket.take(100), bucket.take(500), bucket.take(500)]).toEqual([0, 500, 1000])
  })
})

test('a budget gives all of it and nothing beyond', () => {
  const budget = new Budget(10)
  budget.take(4)
  expect([budget.leftBytes, budget.isSpent]).toEqual([6, false])
  budget.take(6)
  expect([budget.leftBytes, budget.isSpent]).toEqual([0, true])
})

async function received(upstream: Upstream, bytes: number): Promise<number> {
  let count = 0
  for await (const chunk of upstream.stream as AsyncIterable<Buffer>) {
    count += chunk.length
    if (count >= bytes) break
  }
  return count
}

describe('bytes of connections', () => {
  test.each([
    ['of one connection', { connectionBandwidth: 10_000 }],
    ['of the sandbox', { bandwidth: 10_000 }],
  ])('%s pass at the rate that is allowed, in both directions', async (_whose, limits) => {
    const clock = new QuickClock()
    await using server = await serve(echo)
    await using opened = openGate({ rules: rulesOf({ allow: [`127.0.0.1:${server.port}`], ...limits }), clock })
    const permit = permitted(await opened.ask('127.0.0.1', server.port))
    const upstream = await permit.dial()
    const before = clock.time
    upstream.stream.write(Buffer.alloc(50_000, 1))
    expect(await received(upstream, 50_000)).toBe(50_000)
    const passedMs = clock.time - before
    // 49,000 beyond what the bucket holds; both directions may wait at the same time.
    expect(passedMs).toBeGreaterThanOrEqual(4800)
    expect(passedMs).toBeLessThanOrEqual(9900)
    permit.finish()
    expect(opened.gate.summary()).toMatchObject({ bytesUp: 50_000, bytesDown: 50_000 })
  })

  test('of two connections share the rate of their sandbox', async () => {
    const clock = new QuickClock()
    const sizes: number[] = []
    await using server = await serve((socket) => void socket.on('data', (chunk) => sizes.push(chunk.length)))
    await using opened = openGate({ rules: rulesOf({ allow: [`127.0.0.1:${server.port}`], bandwidth: 10_000 }), clock })
    const permits = await Promise.all([0, 1].map(async () => permitted(await opened.ask('127.0.0.1', server.port))))
    const streams = await Promise.all(permits.map(async (permit) => (await permit.dial()).stream))
    await Promise.all(streams.map((stream) => new Promise((resolve) => stream.write(Buffer.alloc(20_000), resolve))))
    expect(clock.time).toBeGreaterThanOrEqual(3800)
    for (const permit of permits) permit.finish()
  })

  test('beyond the budget of a connection end it, and none of them passes', async () => {
    let arrived = 0
    let ended = (): void => undefined
    const end = new Promise<void>((resolve) => (ended = resolve))
    await using server = await serve((socket) => void socket.on('data', (chunk) => (arrived += chunk.length)).on('end', ended))
    await using opened = openGate({ rules: rulesOf({ allow: [`127.0.0.1:${server.port}`], connectionBytes: 1000 }) })
    const permit = permitted(await opened.ask('127.0.0.1', server.port))
    const { stream } = await permit.dial()
    await new Promise((resolve) => stream.write(Buffer.alloc(1000), resolve))
    const closed = closing(stream)
    stream.write('x')
    await closed
    expect(permit.signal.reason).toMatchObject({ code: 'budget', message: 'the 1000b that one connection may carry are spent' })
    permit.finish()
    await end
    expect(arrived).toBe(1000)
    expect(opened.gate.summary().latest[0]).toMatchObject({ verdict: 'denied', bytesUp: 1000, reason: expect.stringContaining('spent') as string })
    const another = permitted(await opened.ask('127.0.0.1', server.port))
    another.finish()
  })

  test('beyond the budget of the sandbox end it, and no other connection begins; a larger one continues where the old one ended', async () => {
    await using server = await serve((socket) => void socket.write(Buffer.alloc(3000)))
    const rules = (bytes: number) => rulesOf({ allow: [`127.0.0.1:${server.port}`], bytes })
    await using opened = openGate({ rules: rules(2000) })
    const permit = permitted(await opened.ask('127.0.0.1', server.port))
    const { stream } = await permit.dial()
    stream.resume()
    await closing(stream)
    permit.finish()
    expect(denied(await opened.ask('127.0.0.1', server.port))).toMatchObject({
      code: 'budget',
      status: 429,
      reason: 'the 2000b that this sandbox may send and receive are spent',
    })
    opened.gate.update(rules(10_000))
    const next = permitted(await opened.ask('127.0.0.1', server.port))
    expect(await received(await next.dial(), 3000)).toBe(3000)
    next.finish()
  })

  test('of a limit that was lowered below what was used: none passes any more', async () => {
    let arrived = 0
    await using server = await serve((socket) => void socket.on('data', (chunk) => (arrived += chunk.length)))
    const rules = (bytes: number) => rulesOf({ allow: [`127.0.0.1:${server.port}`], bytes })
    await using opened = openGate({ rules: rules(5000) })
    const permit = permitted(await opened.ask('127.0.0.1', server.port))
    const { stream } = await permit.dial()
    await new Promise((resolve) => stream.write(Buffer.alloc(3000), resolve))
    await expect.poll(() => arrived).toBe(3000)
    opened.gate.update(rules(2000))
    const closed = closing(stream)
    stream.write(Buffer.alloc(2000))
    await closed
    permit.finish()
    expect([arrived, opened.gate.summary().bytesUp]).toEqual([3000, 3000])
  })

  test('of a budget that sandboxes share pass until its last one, whoever carries them; none begins when it is spent, and all again when there is more', async () => {
    let arrived = 0
    await using server = await serve((socket) => void socket.on('data', (chunk) => (arrived += chunk.length)))
    const budget = { leftBytes: 1_000_000, words: 'all is spent', take: (bytes: number) => void (budget.leftBytes -= bytes) }
    const rules = rulesOf({ allow: [`127.0.0.1:${server.port}`] })
    await using one = openGate({ rules, budget })
    await using other = openGate({ rules, budget })
    const permits = await Promise.all([one, other, one, other].map(async ({ ask }) => permitted(await ask('127.0.0.1', server.port))))
    const uploads = permits.map(async (permit) => {
      const { stream } = await permit.dial()
      const closed = closing(stream)
      // Until it is cut off: each alone would be far more than there is.
      while (!stream.destroyed) await Promise.race([closed, new Promise((resolve) => stream.write(Buffer.alloc(10_007), resolve))])
      await closed
      permit.finish()
    })
    await Promise.all(uploads)
    expect(budget.leftBytes).toBe(0)
    expect(one.gate.summary().bytesUp + other.gate.summary().bytesUp).toBe(1_000_000)
    expect(arrived).toBeLessThanOrEqual(1_000_000)
    for (const { ask } of [one, other])
      expect(denied(await ask('127.0.0.1', server.port))).toMatchObject({ code: 'budget', status: 429, reason: 'all is spent' })
    budget.leftBytes = 10
    permitted(await other.ask('127.0.0.1', server.port)).finish()
  })
})

describe('places', () => {
  async function dialled(answer: Parameters<typeof permitted>[0]): Promise<Permit> {
    const permit = permitted(answer)
    await permit.dial()
    return permit
  }

  test('are so many; who comes later waits for one, and is told when none becomes free', async () => {
    await using server = await serve(echo)
    await using opened = openGate({ rules: rulesOf({ allow: [`127.0.0.1:${server.port}`], maxConnections: 2 }), timings: { placeMs: 100 } })
    const ask = () => opened.ask('127.0.0.1', server.port)
    const [first] = [await dialled(await ask()), await dialled(await ask())]
    expect(denied(await ask())).toMatchObject({
      code: 'busy',
      status: 503,
      reason: 'all 2 connections of this sandbox are in use, and none became free within 100 ms',
    })
    const waiting = ask()
    const { stream } = await first.dial()
    stream.destroy()
    first.finish()
    ;(await dialled(await waiting)).finish()
    expect(server.count).toBe(3)
  })

  test('are given up by connections that only wait to be used again', async () => {
    await using server = await serve(echo)
    await using opened = openGate({ rules: rulesOf({ allow: [`127.0.0.1:${server.port}`], maxConnections: 1 }) })
    const used = await dialled(await opened.ask('127.0.0.1', server.port))
    const kept = await used.dial()
    const waiting = opened.ask('127.0.0.1', server.port)
    await turn()
    expect(kept.isOpen).toBe(true)
    used.finish()
    const next = await dialled(await waiting)
    expect(kept.isOpen).toBe(false)
    const unused = await next.dial()
    next.finish()
    const third = permitted(await opened.ask('127.0.0.1', server.port))
    expect(unused.isOpen).toBe(false)
    third.finish()
  })

  test('are kept by a connection for which the next request has been allowed already', async () => {
    await using server = await serve(echo)
    await using opened = openGate({ rules: rulesOf({ allow: [`127.0.0.1:${server.port}`], maxConnections: 1 }), timings: { placeMs: 50 } })
    const used = await dialled(await opened.ask('127.0.0.1', server.port))
    const over = await used.dial()
    used.finish()
    const next = permitted(await opened.gate.ask({ door: 'proxy', host: '127.0.0.1', port: server.port, scheme: 'http', method: 'GET', path: '/', over }))
    expect(denied(await opened.ask('127.0.0.1', server.port)).code).toBe('busy')
    expect(await next.dial()).toBe(over)
    next.finish()
  })

  test('of those who wait are so many too, and whoever goes away leaves one', async () => {
    await using server = await serve(echo)
    await using opened = openGate({ rules: rulesOf({ allow: [`127.0.0.1:${server.port}`], maxConnections: 1 }) })
    const attempt = { door: 'proxy', host: '127.0.0.1', port: server.port, scheme: 'tcp' } as const
    const first = await dialled(await opened.gate.ask(attempt))
    const gone = new AbortController()
    setMaxListeners(0, gone.signal)
    const waiting = Array.from({ length: 256 }, () => opened.gate.ask(attempt, gone.signal))
    await turn()
    expect(denied(await opened.gate.ask(attempt)).reason).toContain('and 256 more wait already')
    gone.abort()
    expect(new Set((await Promise.all(waiting)).map((answer) => denied(answer).code))).toEqual(new Set(['closed']))
    const next = opened.gate.ask(attempt)
    ;(await first.dial()).stream.destroy()
    permitted(await next).finish()
    first.finish()
  })
})

describe('who has not said what it wants', () => {
  test('has so much time, and there are so many of them; another sandbox is not concerned', async () => {
    await using server = await serve(echo)
    await using flooded = openGate({ rules: rulesOf({ allow: ['a.example'], maxConnections: 10 }), timings: { entranceMs: 50 } })
    await using other = openGate({ rules: rulesOf({ allow: [`127.0.0.1:${server.port}`] }) })
    const entered = Array.from({ length: 5000 }, () => flooded.gate.enter()).filter((entrance) => entrance !== undefined)
    expect(entered.length).toBe(266)
    const entrance = other.gate.enter()
    expect(entrance?.signal.aborted).toBe(false)
    const permit = permitted(await other.ask('127.0.0.1', server.port))
    entrance?.leave()
    await permit.dial()
    permit.finish()
    await Promise.all(entered.map(async ({ signal }) => signal.aborted || (await once(signal, 'abort'))))
    expect(entered[0]?.signal.reason).toMatchObject({ code: 'timed-out', message: 'nothing that could be understood came within 50 ms' })
    expect(flooded.gate.enter()).toBeUndefined()
    entered[0]?.leave()
    entered[0]?.leave()
    expect([flooded.gate.enter(), flooded.gate.enter()].map((each) => each === undefined)).toEqual([false, true])
  })
})

describe('time', () => {
  test('is up for a connection that carries nothing', async () => {
    await using server = await serve(() => undefined)
    await using opened = openGate({ rules: rulesOf({ allow: [`127.0.0.1:${server.port}`], idleTimeout: 50 }) })
    const permit = permitted(await opened.ask('127.0.0.1', server.port))
    await closing((await permit.dial()).stream)
    expect(permit.signal.reason).toMatchObject({ code: 'timed-out', message: 'nothing was carried for 50 ms' })
    permit.finish()
    expect(opened.gate.summary().latest[0]).toMatchObject({ verdict: 'failed', reason: 'nothing was carried for 50 ms' })
  })

  test('is up for a request, but not for what is passed through', async () => {
    await using server = await serve(echo)
    await using opened = openGate({ rules: rulesOf({ allow: [`127.0.0.1:${server.port}`], requestTimeout: 50 }) })
    const passed = permitted(await opened.ask('127.0.0.1', server.port))
    const request = permitted(await opened.gate.ask({ door: 'proxy', host: '127.0.0.1', port: server.port, scheme: 'http', method: 'GET', path: '/' }))
    await once(request.signal, 'abort')
    expect(request.signal.reason).toMatchObject({ code: 'timed-out', message: 'the request took longer than 50 ms' })
    expect(passed.signal.aborted).toBe(false)
    request.finish()
    passed.finish()
  })
})

test('what is not read is not taken in: a slow guest holds the other side back', async () => {
  await using server = await serve((socket) => void socket.write(Buffer.alloc(64 * 2 ** 20)))
  await using opened = openGate({ rules: rulesOf({ allow: [`127.0.0.1:${server.port}`] }) })
  const permit = permitted(await opened.ask('127.0.0.1', server.port))
  const { stream } = await permit.dial()
  stream.once('readable', () => undefined)
  await once(stream, 'readable')
  for (let turns = 0; turns < 200; turns++) await turn()
  expect(stream.readableLength).toBeLessThan(2 ** 20)
  stream.destroy()
  permit.finish()
})
