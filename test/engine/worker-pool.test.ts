import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import { WorkerPool } from '../../src/engine/worker-pool.js'
import { rejectionOf } from './collect.js'

class CountedWorker {
  readonly kind: string
  isKilled = false
  end!: () => void
  readonly ended = new Promise<void>((resolve) => {
    this.end = resolve
  })

  constructor(kind: string) {
    this.kind = kind
  }

  kill(): Promise<void> {
    this.isKilled = true
    this.end()
    return Promise.resolve()
  }
}

let started: CountedWorker[]

beforeEach(() => {
  started = []
})

function createPool(bounds: { mostAtOnce?: number; mostLasting?: number; idleMs?: number; waitMs?: number } = {}): WorkerPool<CountedWorker, string> {
  return new WorkerPool({
    name: 'sandbox x',
    keyOf: (kind) => kind,
    start: (kind) => {
      const worker = new CountedWorker(kind)
      started.push(worker)
      return Promise.resolve(worker)
    },
    bounds: { idleMs: 10_000, ...bounds },
  })
}

describe('a pool of workers', () => {
  test('hands out again what was given back, only to its own kind, and never what was dropped or has died', async () => {
    const pool = createPool()
    const first = await pool.take({ kind: 'user' })
    first.giveBack()
    const again = await pool.take({ kind: 'user' })
    expect(again.worker).toBe(first.worker)
    expect((await pool.take({ kind: 'root' })).worker).not.toBe(first.worker)
    await again.drop()
    expect(first.worker.isKilled).toBe(true)
    const fresh = await pool.take({ kind: 'user' })
    expect(fresh.worker).not.toBe(first.worker)
    fresh.giveBack()
    fresh.worker.end()
    await sleep(1)
    expect((await pool.take({ kind: 'user' })).worker).not.toBe(fresh.worker)
    pool.close()
  })

  test('has so many under way at once, and the rest in their order', async () => {
    const pool = createPool({ mostAtOnce: 2 })
    const [one] = await Promise.all([pool.take({ kind: 'user' }), pool.take({ kind: 'user' })])
    const order: number[] = []
    const waiting = [1, 2].map(async (number) => {
      const lease = await pool.take({ kind: 'user' })
      order.push(number)
      lease.giveBack()
    })
    await sleep(5)
    expect([order, started.length]).toEqual([[], 2])
    one.giveBack()
    await Promise.all(waiting)
    expect([order, started.length]).toEqual([[1, 2], 2])
    pool.close()
  })

  test('lets a waiting one be called off, which costs nobody a place', async () => {
    const pool = createPool({ mostAtOnce: 1 })
    const lease = await pool.take({ kind: 'user' })
    const controller = new AbortController()
    const waiting = pool.take({ kind: 'user', signal: controller.signal })
    controller.abort(new Error('no longer'))
    expect(await rejectionOf(waiting)).toMatchObject({ message: 'no longer' })
    const next = pool.take({ kind: 'user' })
    lease.giveBack()
    ;(await next).giveBack()
    pool.close()
  })

  test('tells those who wait when nothing ends', async () => {
    const pool = createPool({ mostAtOnce: 1, waitMs: 30 })
    await pool.take({ kind: 'user' })
    expect(await rejectionOf(pool.take({ kind: 'user' }))).toMatchObject({ code: 'busy', message: expect.stringContaining('none has ended') })
    pool.close()
  })

  test('counts what lasts apart', async () => {
    const pool = createPool({ mostAtOnce: 1, mostLasting: 1 })
    const lasting = await pool.take({ kind: 'user', lasts: true })
    ;(await pool.take({ kind: 'user' })).giveBack()
    expect(await rejectionOf(pool.take({ kind: 'user', lasts: true }))).toMatchObject({ code: 'busy' })
    await lasting.drop()
    await (await pool.take({ kind: 'user', lasts: true })).drop()
    pool.close()
  })

  test('ends workers that are idle for too long, and all of them when it is closed', async () => {
    const pool = createPool({ idleMs: 20 })
    ;(await pool.take({ kind: 'user' })).giveBack()
    await expect.poll(() => started[0]?.isKilled).toBe(true)
    const late = await pool.take({ kind: 'user' })
    ;(await pool.take({ kind: 'root' })).giveBack()
    pool.close()
    late.giveBack()
    expect(started.map(({ isKilled }) => isKilled)).toEqual([true, true, true])
  })
})
