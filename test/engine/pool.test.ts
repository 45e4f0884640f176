// What is kept ready, without cells: who gets what, how many there are, and what is left.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { type HandedOut, Pool, type PoolItem, type PoolOrder } from '../../src/engine/pool.js'
import { rejectionOf } from './collect.js'
import { waitUntil } from './processes.js'

class Item implements PoolItem {
  readonly ended: Promise<void>
  isAlive = true
  isReady = false
  closings = 0
  closeFailures = 0
  die: () => void = () => undefined

  constructor(readonly number: number) {
    this.ended = new Promise((resolve) => {
      this.die = () => {
        this.isAlive = false
        resolve()
      }
    })
  }

  rest(): Promise<void> {
    this.isReady = true
    return Promise.resolve()
  }

  async close(): Promise<void> {
    if (closeMs > 0) await sleep(closeMs)
    if (this.closeFailures > 0) {
      this.closeFailures -= 1
      throw new Error('it would not close')
    }
    this.closings += 1
  }
}

let made: Item[] = []
let failures = 0
let closeMs = 0
/** Waited for before one is made. */
let gate: () => Promise<unknown> = () => Promise.resolve()
const pools: Pool<Item>[] = []

afterEach(async () => {
  gate = () => Promise.resolve()
  failures = 0
  closeMs = 0
  for (const pool of pools.splice(0)) await pool.close()
  expect(made.filter(({ closings }) => closings !== 1)).toEqual([])
  made = []
})

function open(order: Partial<PoolOrder<Item>> = {}): Pool<Item> {
  const make = async (signal: AbortSignal): Promise<Item> => {
    await gate()
    signal.throwIfAborted()
    if (failures > 0) {
      failures -= 1
      throw new Error('there is no room')
    }
    const item = new Item(made.length)
    made.push(item)
    return item
  }
  const usual = { name: 'the pool', size: 2, max: 4, queue: 2, recycleAfterMs: 60_000, idleAfterMs: undefined, atOnce: 1, make, hasRoom: () => true }
  const pool = new Pool<Item>({ ...usual, ...order })
  pools.push(pool)
  return pool
}

interface Use extends HandedOut<Item, Item> {
  end(): Promise<void>
}

function use(item: Item): Use {
  let over = (): void => undefined
  const gone = new Promise<undefined>((resolve) => {
    over = () => resolve(undefined)
  })
  const end = async (): Promise<void> => {
    await item.close()
    over()
  }
  return { value: item, over: gone, close: end, end }
}

/** One, and the way to be through with it. */
async function take(pool: Pool<Item>, signal?: AbortSignal): Promise<{ readonly item: Item; readonly end: () => Promise<void> }> {
  let mine: Use | undefined
  const item = await pool.acquire((given) => (mine = use(given)), signal)
  return { item, end: () => mine?.end() ?? Promise.resolve() }
}

const isFull = (pool: Pool<Item>, size = 2) => waitUntil(() => pool.status.available === size)

describe('a pool', () => {
  test('makes nothing before it is asked, then keeps as many ready as it should', async () => {
    const pool = open()
    expect([made.length, pool.status]).toEqual([0, { total: 0, available: 0, inUse: 0, waiting: 0 }])
    const { item, end } = await take(pool)
    await isFull(pool)
    expect(pool.status).toEqual({ total: 3, available: 2, inUse: 1, waiting: 0 })
    expect(made.map(({ isReady }) => isReady)).toEqual([false, true, true])
    await end()
    expect([item.closings, pool.status.inUse]).toEqual([1, 0])
  })

  test('hands out the oldest, and nothing twice', async () => {
    const pool = open()
    await pool.first()
    await isFull(pool)
    const [one, two] = [await take(pool), await take(pool)]
    expect([one.item.number, two.item.number].sort()).toEqual([0, 1])
    await one.end()
    await two.end()
    await isFull(pool)
    expect((await take(pool)).item.number).toBeGreaterThan(1)
  })

  test('gives those that wait their turn in the order in which they asked, and refuses one too many', async () => {
    const pool = open({ size: 0, max: 1, queue: 2 })
    const first = await take(pool)
    const order: string[] = []
    const later = ['b', 'c'].map((name) => take(pool).then((got) => (order.push(name), got)))
    await waitUntil(() => pool.status.waiting === 2)
    expect(await rejectionOf(take(pool))).toMatchObject({
      code: 'busy',
      message: 'the pool has 1 sandboxes, and 2 callers wait for one; no more are allowed at once',
    })
    await first.end()
    const second = await (later[0] as (typeof later)[number])
    expect([order, pool.status]).toEqual([['b'], { total: 1, available: 0, inUse: 1, waiting: 1 }])
    await second.end()
    await (await (later[1] as (typeof later)[number])).end()
    expect(order).toEqual(['b', 'c'])
  })

  test('lets whoever gives up go, and what was being made for it waits', async () => {
    let begin = (): void => undefined
    gate = () => new Promise<void>((resolve) => (begin = resolve))
    const pool = open({ size: 1 })
    const giveUp = new AbortController()
    const given = rejectionOf(take(pool, giveUp.signal))
    await waitUntil(() => pool.status.waiting === 1)
    giveUp.abort(new Error('enough'))
    expect(await given).toMatchObject({ message: 'enough' })
    begin()
    await isFull(pool, 1)
    expect(pool.status).toEqual({ total: 1, available: 1, inUse: 0, waiting: 0 })
  })

  test('does not hand out what died while it waited, and makes another', async () => {
    const pool = open({ size: 1 })
    await pool.first()
    await isFull(pool, 1)
    made[0]?.die()
    expect((await take(pool)).item.number).toBe(1)
    expect(made[0]?.closings).toBe(1)
  })

  test('replaces what has waited for too long', async () => {
    const pool = open({ size: 1, recycleAfterMs: 50 })
    await pool.first()
    await waitUntil(() => made.length > 2)
    expect(made[0]?.closings).toBe(1)
    expect(pool.status.total).toBeLessThan(3)
  })

  test('keeps none ready once nobody has asked for long, until somebody does', async () => {
    const pool = open({ size: 2, idleAfterMs: 50 })
    await pool.first()
    await waitUntil(() => made.length > 0 && pool.status.total === 0)
    const before = made.length
    await sleep(100)
    expect(made.length).toBe(before)
    const { end } = await take(pool)
    await end()
    expect(made.length).toBeGreaterThan(before)
  })

  test('is asleep only when what was just being made is closed too', async () => {
    const pool = open({ size: 1 })
    await pool.first()
    let letGo: () => void = () => undefined
    gate = () => new Promise<void>((resolve) => (letGo = resolve))
    const { end } = await take(pool)
    await waitUntil(() => pool.status.total === 2)
    closeMs = 50
    const asleep = pool.sleep()
    letGo()
    await asleep
    expect([pool.status.total, made.map(({ closings }) => closings)]).toEqual([1, [0, 1]])
    await end()
  })

  test('tells whoever waits why there is none, and in the background notes it and tries again', async () => {
    const pool = open({ size: 1 })
    failures = 1
    expect(await rejectionOf(take(pool))).toMatchObject({ message: 'there is no room' })
    const { end } = await take(pool)
    failures = 1
    await waitUntil(() => pool.status.failure === 'there is no room')
    await isFull(pool, 1)
    expect(pool.status.failure).toBeUndefined()
    await end()
  })

  test('keeps a place for what it could not close, tells of it, and closes it in the end', async () => {
    const pool = open({ size: 1, max: 1 })
    const stuck = await pool.first()
    await isFull(pool, 1)
    stuck.closeFailures = 1
    await pool.giveWay()
    expect(pool.status).toEqual({ total: 1, available: 0, inUse: 0, waiting: 0, failure: 'it would not close' })
    await pool.close()
    expect(stuck.closings).toBe(1)
  })

  test('gives way: what waits is closed, and what is being made for nobody is called off', async () => {
    let hasRoom = true
    const pool = open({ size: 1, hasRoom: () => hasRoom })
    await pool.first()
    await isFull(pool, 1)
    hasRoom = false
    await pool.giveWay()
    expect([made[0]?.closings, pool.unused, pool.giveWay()]).toEqual([1, 0, undefined])
    let begin = (): void => undefined
    gate = () => new Promise<void>((resolve) => (begin = resolve))
    hasRoom = true
    const { end } = await Promise.all([take(pool), waitUntil(() => pool.status.waiting === 1).then(() => begin())]).then(([got]) => got)
    await waitUntil(() => pool.unused === 1)
    hasRoom = false
    const way = pool.giveWay()
    begin()
    await way
    expect(pool.unused).toBe(0)
    await end()
  })

  test('once closed has nothing left, in use or not, and refuses', async () => {
    const pool = open()
    const { item } = await take(pool)
    await isFull(pool)
    const waiting = [take(pool), take(pool), take(pool)].map((each) => each.catch((error: unknown) => error))
    await pool.close()
    await Promise.all(waiting)
    expect([item.closings, pool.status.total]).toEqual([1, 0])
    expect(await rejectionOf(take(pool))).toMatchObject({ code: 'closed' })
  })
})

/** The same numbers every time. */
function dice(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state % below
  }
}

describe('however many ask at once', () => {
  test.each([1, 2, 3, 4, 5, 6])('nobody gets what another had, there are never too many, and nothing is left (seed %i)', async (seed) => {
    const roll = dice(seed)
    gate = () => sleep(roll(3))
    const max = 1 + roll(5)
    const pool = open({ size: roll(max + 1), max, queue: 4, atOnce: 1 + roll(2), recycleAfterMs: 50 + roll(50) })
    const had = new Set<number>()
    const user = async (): Promise<void> => {
      for (let turn = 0; turn < 6; turn += 1) {
        await sleep(roll(4))
        const signal = roll(4) === 0 ? AbortSignal.timeout(1 + roll(3)) : undefined
        const got = await take(pool, signal).catch(() => undefined)
        expect(pool.status.total).toBeLessThanOrEqual(max)
        if (!got) continue
        expect([had.has(got.item.number), got.item.isAlive, got.item.closings]).toEqual([false, true, 0])
        had.add(got.item.number)
        if (roll(3) === 0) made[roll(made.length)]?.die()
        await sleep(roll(3))
        await got.end()
      }
    }
    await Promise.all(Array.from({ length: 8 }, user))
    expect(had.size).toBeGreaterThan(0)
    await pool.close()
    expect(pool.status).toMatchObject({ total: 0, available: 0, inUse: 0, waiting: 0 })
  })
})
