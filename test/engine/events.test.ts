// What a platform tells of its sandboxes, over an engine with the real warden and no walls.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { PlatformEvent, PlatformEventType } from '../../src/contract/events.js'
import type { Engine } from '../../src/engine/engine.js'
import { collect } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'
import { allowAll, answer } from './postures.js'

let driver: PlainDriver
let engine: Engine
let told: PlatformEvent[]
let reading: Promise<void>

beforeEach(() => {
  driver = new PlainDriver()
  answer(driver)
  engine = createPlainEngine(driver, { filter: () => Promise.resolve(allowAll) })
  told = []
  reading = read()
})

afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  // The platform's end is theirs.
  await reading
})

async function read(): Promise<void> {
  for await (const event of engine.events.listen()) told.push(event)
}

const of = (sandbox: string): PlatformEvent[] => told.filter((event) => 'sandbox' in event && event.sandbox === sandbox)
const typesOf = (sandbox: string): PlatformEventType[] => of(sandbox).map(({ type }) => type)

test('a sandbox is told from its creation to its end, with whose it is, each program, and why it ended', async () => {
  const { id } = await engine.create({ name: 'review', agent: 'a7' })
  const program = await engine.start(id, { command: ['sh', '-c', 'exit 3'] })
  await collect(program)
  await engine.close(id)
  await expect.poll(() => typesOf(id)).toEqual(['created', 'exit', 'closed'])
  const whose = { sandbox: id, name: 'review', agent: 'a7' }
  expect(of(id)).toMatchObject([
    { ...whose, type: 'created', driver: driver.name, template: 'host', fresh: 'cell' },
    { ...whose, type: 'exit', pid: program.pid, ending: { outcome: { kind: 'exited', code: 3 } } },
    { ...whose, type: 'closed', code: 'closed', reason: `sandbox ${id} was closed` },
  ])
  expect(of(id)[0]).not.toHaveProperty('pool')
})

test('limits that were met are told by their names, and the end of a lifetime by its code', async () => {
  const { id } = await engine.create({ lifetime: '700ms' })
  const program = await engine.start(id, { command: ['sleep', '60'], timeout: '50ms' })
  await collect(program)
  await expect.poll(() => typesOf(id)).toEqual(['created', 'limited', 'exit', 'expired', 'closed'])
  expect(of(id)[1]).toMatchObject({ limit: 'time' })
  expect(of(id)[4]).toMatchObject({ code: 'expired' })
})

test('a cell that ends by itself is told as broken', async () => {
  const { id } = await engine.create({})
  driver.cells[0]?.child.kill('SIGKILL')
  await expect.poll(() => of(id).at(-1)).toMatchObject({ type: 'closed', code: 'broken' })
})

test('what waits in a pool is nobody’s and is not told; what is handed out is told as a hit, and what had to be made as a miss', async () => {
  const { id: pool } = await engine.pools.create({}, { size: 1, max: 2 })
  while ((await engine.pools.status(pool)).available < 1) await sleep(5)
  expect(told.filter(({ type }) => type === 'created')).toEqual([])
  const first = await engine.pools.acquire(pool, { agent: 'a1' })
  const second = await engine.pools.acquire(pool)
  expect([first.pool, second.pool]).toEqual(['hit', 'miss'])
  await expect.poll(() => of(second.id)[0]).toMatchObject({ type: 'created', pool: 'miss' })
  expect(of(first.id)[0]).toMatchObject({ type: 'created', pool: 'hit', agent: 'a1' })
})

test('how many wait in a pool is told when it has changed, and that nothing is left of it', async () => {
  const { id: pool } = await engine.pools.create({}, { size: 2 })
  const levels = (): unknown[] => told.flatMap((event) => (event.type === 'pool' && event.pool === pool ? [event.status] : []))
  await expect.poll(() => levels().at(-1)).toMatchObject({ total: 2, available: 2, inUse: 0, waiting: 0 })
  await engine.pools.close(pool)
  await expect.poll(() => levels().at(-1)).toEqual({ total: 0, available: 0, inUse: 0, waiting: 0 })
})

test('a one-shot is told as the sandbox that it is', async () => {
  const shot = await engine.pools.run({ spec: { agent: 'a2' } }, { command: ['true'] })
  await collect(shot.program)
  await shot.release()
  await expect.poll(() => typesOf(shot.sandbox.id)).toEqual(['created', 'exit', 'closed'])
})
