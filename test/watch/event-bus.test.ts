import { describe, expect, test } from 'vitest'
import type { PlatformEvent, PlatformEventFacts } from '../../src/contract/events.js'
import { createEventBus } from '../../src/watch/event-bus.js'

const closed = (sandbox: string, more: { tenant?: string; agent?: string } = {}): PlatformEventFacts => ({
  type: 'closed',
  sandbox,
  code: 'closed',
  reason: 'it was closed',
  ...more,
})

async function take(events: AsyncIterable<PlatformEvent>, count: number): Promise<PlatformEvent[]> {
  const taken: PlatformEvent[] = []
  for await (const event of events) {
    taken.push(event)
    if (taken.length === count) break
  }
  return taken
}

const names = (events: readonly PlatformEvent[]): unknown[] => events.map((event) => ('sandbox' in event ? event.sandbox : event.type))

describe('events of a platform', () => {
  test('are told to every reader from the call on, also before it begins to read', async () => {
    const bus = createEventBus()
    bus.tell(closed('before'))
    const first = bus.listen()
    const second = bus.listen()
    bus.tell(closed('a'))
    bus.tell(closed('b'))
    expect(names(await take(first, 2))).toEqual(['a', 'b'])
    expect(names(await take(second, 2))).toEqual(['a', 'b'])
    expect(bus.readers).toBe(0)
  })

  test('wake a reader that waits, and pass over what it did not ask for', async () => {
    const bus = createEventBus({ keep: 4 })
    const reader = bus.listen({ sandbox: 'mine' })[Symbol.asyncIterator]()
    const next = reader.next()
    // Far more than is kept: none of them was for it, so it has missed nothing.
    for (let n = 0; n < 20; n += 1) {
      bus.tell(closed(`other-${n}`))
      await Promise.resolve()
    }
    bus.tell(closed('mine'))
    bus.tell(closed('other'))
    expect(names([(await next).value as PlatformEvent])).toEqual(['mine'])
  })

  test('are lost to a reader that is too slow, which is told how many, and the teller never waits', async () => {
    const bus = createEventBus({ keep: 8 })
    const reader = bus.listen()
    for (let n = 0; n < 20; n += 1) bus.tell(closed(`s${n}`))
    const [missed, ...rest] = await take(reader, 9)
    expect(missed).toMatchObject({ type: 'missed', count: 12 })
    expect(names(rest)).toEqual(['s12', 's13', 's14', 's15', 's16', 's17', 's18', 's19'])
  })

  test('go on after a cursor without a gap and without a repetition', async () => {
    const bus = createEventBus()
    const reader = bus.listen()
    for (let n = 0; n < 5; n += 1) bus.tell(closed(`s${n}`))
    const [, second] = await take(reader, 2)
    expect(names(await take(bus.listen({ after: second?.cursor ?? '' }), 3))).toEqual(['s2', 's3', 's4'])
  })

  test('after a cursor that is not kept any more begin with how many are gone', async () => {
    const bus = createEventBus({ keep: 3 })
    const reader = bus.listen()
    bus.tell(closed('s0'))
    const [first] = await take(reader, 1)
    for (let n = 1; n < 8; n += 1) bus.tell(closed(`s${n}`))
    const again = await take(bus.listen({ after: first?.cursor ?? '' }), 4)
    expect(again[0]).toMatchObject({ type: 'missed', count: 4 })
    expect(names(again.slice(1))).toEqual(['s5', 's6', 's7'])
  })

  test('after a cursor of another platform begin with a loss of unknown size, and what is no cursor is refused', async () => {
    const before = createEventBus()
    const old = before.listen()
    before.tell(closed('old'))
    const [last] = await take(old, 1)
    const bus = createEventBus()
    bus.tell(closed('new'))
    const again = await take(bus.listen({ after: last?.cursor ?? '' }), 2)
    expect(again[0]).toMatchObject({ type: 'missed', reason: 'what was asked for is not kept here' })
    expect(again[0]).not.toHaveProperty('count')
    expect(names(again.slice(1))).toEqual(['new'])
    for (const after of ['', 'x', '0.1', `${'a'.repeat(12)}.1.5`]) expect(() => bus.listen({ after })).toThrow(/after: is no cursor/)
  })

  test('of another tenant are neither told nor counted, nor do they push anything out', async () => {
    const bus = createEventBus({ keep: 4 })
    const quiet = bus.listen({ tenant: 'quiet' })
    bus.tell(closed('q0', { tenant: 'quiet' }))
    bus.tell(closed('nobodys'))
    for (let n = 0; n < 100; n += 1) bus.tell(closed(`n${n}`, { tenant: 'noisy' }))
    bus.tell(closed('q1', { tenant: 'quiet' }))
    const told = await take(quiet, 2)
    expect(told.map((event) => ('sandbox' in event ? event.sandbox : event.type))).toEqual(['q0', 'q1'])
    expect(told.map(({ cursor }) => cursor.split('.')[1])).toEqual(['0', '1'])
  })

  test('are chosen by type and by agent', async () => {
    const bus = createEventBus()
    const reader = bus.listen({ types: ['anomaly', 'closed'], agent: 'a7' })
    bus.tell({ type: 'anomaly', kind: 'host-scan', reason: 'many hosts', agent: 'a7' })
    bus.tell({ type: 'restarted', lost: 0, reason: 'it was stopped' })
    bus.tell(closed('x', { agent: 'a8' }))
    bus.tell(closed('y', { agent: 'a7' }))
    expect((await take(reader, 2)).map(({ type }) => type)).toEqual(['anomaly', 'closed'])
    expect(() => bus.listen({ types: ['closes' as 'closed'] })).toThrow("there are no events 'closes'")
  })

  test('end when the platform does, after what was told, and with the signal of whoever listens', async () => {
    const bus = createEventBus()
    const stop = new AbortController()
    const stopped = bus.listen({ signal: stop.signal })[Symbol.asyncIterator]().next()
    stop.abort(new Error('enough'))
    await expect(stopped).rejects.toThrow('enough')
    const reader = bus.listen()
    bus.tell(closed('last'))
    bus.close()
    bus.tell(closed('too late'))
    expect(names(await take(reader, 5))).toEqual(['last'])
    expect(await take(bus.listen(), 1)).toEqual([])
    expect(bus.readers).toBe(0)
  })
})
