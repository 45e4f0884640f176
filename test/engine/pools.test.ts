// Pools over an engine with the real warden and no walls, whose kernel says what a test wants it to.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { PostureSubject } from '../../src/contract/driver.js'
import type { Engine } from '../../src/engine/engine.js'
import type { EngineOptions } from '../../src/engine/engine-options.js'
import type { SpecInput } from '../../src/contract/spec.js'
import { collect, rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'
import { allowAll, answer } from './postures.js'
import { waitUntil } from './processes.js'

let driver: PlainDriver
let engine: Engine
let asked: PostureSubject[]

beforeEach(() => {
  driver = new PlainDriver()
  asked = answer(driver)
  engine = start()
})

afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  expect([driver.openCells, driver.cells.filter(({ openRuns }) => openRuns > 0).length]).toEqual([0, 0])
})

function start(options: Partial<EngineOptions> = {}): Engine {
  return createPlainEngine(driver, { filter: () => Promise.resolve(allowAll), ...options })
}

const available = async (pool: string): Promise<number> => (await engine.pools.status(pool)).available

async function open(size: number, more: { readonly spec?: SpecInput; readonly max?: number; readonly queue?: number } = {}): Promise<string> {
  const { spec = {}, ...rest } = more
  const { id } = await engine.pools.create(spec, { size, ...rest })
  while ((await available(id)) < size) await sleep(5)
  return id
}

const looks = (depth: 'full' | 'short'): number => asked.filter((subject) => subject.kind === 'program' && subject.depth === depth).length

async function oneShot(spec: SpecInput = {}, command = 'echo $$'): Promise<string> {
  const shot = await engine.pools.run({ spec }, { command })
  const { stdout } = await collect(shot.program)
  await shot.release()
  return stdout
}

describe('a sandbox of a pool', () => {
  test('is nobody’s before: it is in no list, and its times and names begin when it is handed out', async () => {
    const pool = await open(1)
    const ids: string[] = []
    for await (const { id } of engine.list()) ids.push(id)
    expect(ids).toEqual([])
    await sleep(30)
    const before = Date.now()
    const info = await engine.pools.acquire(pool, { name: 'mine', agent: 'reviewer', metadata: { pr: '7' } })
    expect(info.spec).toMatchObject({ name: 'mine', agent: 'reviewer', metadata: { pr: '7' } })
    expect(Date.parse(info.createdAt)).toBeGreaterThanOrEqual(before)
    expect(Date.parse(info.expiresAt) - Date.parse(info.createdAt)).toBe(300_000)
    expect(await engine.info(info.id)).toMatchObject({ id: info.id })
    expect(await engine.closeAll({ agent: 'reviewer' })).toBe(1)
  })

  test('has its first program ready, read in full before anyone asked', async () => {
    const pool = await open(1)
    await waitUntil(() => looks('full') === 1)
    const { id } = await engine.pools.acquire(pool)
    expect((await collect(await engine.start(id, { command: 'echo one' }))).stdout).toBe('one\n')
    const receipt = await engine.receipt(id)
    expect([receipt.fresh, receipt.pooled, receipt.runs.map(({ posture }) => posture)]).toEqual(['cell', true, ['full']])
    expect(receipt.controls.filter(({ control }) => control === 'filter').map(({ subject, verdict }) => [subject, verdict])).toEqual([['run 1', 'proven']])
    expect(driver.cells[0]?.countedAnew).toBe(1)
    await engine.pools.close(pool)
  })

  test('is never handed out when the kernel says something else of its first program', async () => {
    asked = answer(driver, (subject) => (subject.kind === 'program' && driver.cells.length === 1 ? { 'no-new-privs': false } : {}))
    const { id: pool } = await engine.pools.create({}, { size: 1 })
    await waitUntil(() => driver.cells.length >= 2 && driver.cells[0]?.isClosed === true)
    const { id } = await engine.pools.acquire(pool)
    expect((await collect(await engine.start(id, { command: 'echo fine' }))).stdout).toBe('fine\n')
    await engine.pools.close(pool)
  })

  test('is never handed out when the kernel says something else of the interpreter that was begun in it', async () => {
    const python = { command: ['/usr/bin/python3', '-c', 'print("fine")'] }
    const run = async (): Promise<readonly unknown[]> => {
      while ((await available(pool)) < 1) await sleep(5)
      const shot = await engine.pools.run({ pool }, python)
      const { stdout } = await collect(shot.program)
      const { runs } = await shot.receipt()
      await shot.release()
      return [stdout, runs.map(({ begunAhead }) => begunAhead)]
    }
    asked = answer(driver, (subject) => {
      if (subject.kind !== 'program' || driver.cells.length < 2) return {}
      return { ...(subject.depth === 'full' && { descriptors: [0, 1, 2, 3, 4] }), ...(driver.cells.length === 2 && { 'no-new-privs': false }) }
    })
    const pool = await open(1)
    expect(await run()).toEqual(['fine\n', [undefined]])
    await waitUntil(() => driver.cells.length >= 3 && driver.cells[1]?.isClosed === true)
    expect(await run()).toEqual(['fine\n', [true]])
    await engine.pools.close(pool)
  })

  test('that died while it waited is replaced', async () => {
    const pool = await open(1)
    driver.cells[0]?.child.kill('SIGKILL')
    await waitUntil(() => driver.cells[0]?.isClosed === true)
    const { id } = await engine.pools.acquire(pool)
    expect((await collect(await engine.start(id, { command: 'echo alive' }))).stdout).toBe('alive\n')
    await engine.pools.close(pool)
  })

  test('is closed with its pool, and another takes the place of one that is closed', async () => {
    const pool = await open(1, { max: 2 })
    const { id } = await engine.pools.acquire(pool)
    const other = await engine.pools.acquire(pool)
    const third = engine.pools.acquire(pool)
    await waitUntil(() => driver.openCells === 2)
    await engine.close(id)
    expect((await third).id).not.toBe(id)
    await engine.pools.close(pool)
    expect(await rejectionOf(engine.info(other.id))).toMatchObject({ code: 'closed' })
    expect(await rejectionOf(engine.pools.acquire(pool))).toMatchObject({ code: 'not-found' })
  })

  test('says what cannot be kept ready, and what does not fit', async () => {
    const refusals = [
      [{ mounts: [{ source: '/srv', target: '/mnt/in' }] }, {}, /^mounts: /],
      [{ name: 'one' }, {}, /^name: belongs to one sandbox/],
      [{ from: 'snapshot' }, {}, /^from: /],
      [{ seccomp: {} }, {}, /^seccomp: /],
      [{}, { size: 3, max: 2 }, /^size: 3 is above max, which is 2/],
      [{}, { recycleAfterRuns: 3 }, /^recycleAfterRuns: is only for a pool with fresh: 'liner'/],
      [{}, { imports: ['numpy'], language: 'python' }, /^imports: do not go with language/],
      [{}, { sise: 3 }, /sise: is not a known field/],
    ] as const
    for (const [spec, settings, message] of refusals) {
      const error = await rejectionOf(engine.pools.create(spec as SpecInput, settings as object))
      expect(error).toMatchObject({ code: 'invalid', message: expect.stringMatching(message) as string })
    }
    expect(await rejectionOf(engine.pools.create({}, { fresh: 'liner' }))).toMatchObject({ code: 'unsupported' })
  })
})

describe('the bound of sandboxes', () => {
  test('holds for those that wait too, and they give way to one that is asked for', async () => {
    engine = start({ bounds: { maxSandboxes: 2 } })
    await open(2)
    const one = await engine.create({})
    expect(driver.openCells).toBe(2)
    const two = await engine.create({})
    expect(driver.openCells).toBe(2)
    expect(await rejectionOf(engine.create({}))).toMatchObject({ code: 'busy' })
    await Promise.all([engine.close(one.id), engine.close(two.id)])
  })

  test('is met also by whoever waits for one of a pool', async () => {
    engine = start({ bounds: { maxSandboxes: 1 } })
    const pool = await open(0, { max: 5 })
    const { id } = await engine.create({})
    expect(await rejectionOf(engine.pools.acquire(pool))).toMatchObject({ code: 'busy', message: expect.stringMatching(/^there are 1 sandboxes/) as string })
    await engine.close(id)
    expect((await engine.pools.acquire(pool)).state).toBe('running')
  })
})

describe('one-shots', () => {
  test('each have a sandbox of their own; the first two make nothing ahead, the next find one ready', async () => {
    await oneShot()
    await waitUntil(() => driver.openCells === 0)
    await sleep(50)
    expect(driver.cells.length).toBe(1)
    await oneShot()
    await waitUntil(() => driver.openCells > 0 && driver.cells.length > 2)
    const before = driver.cells.length
    await waitUntil(() => looks('full') > 2)
    await oneShot()
    expect(new Set(driver.cells.slice(0, before).map(({ spec }) => spec.id)).size).toBe(before)
    await engine.closeAll()
    expect(driver.openCells).toBe(0)
  })

  test('of another class are not given what was made for this one', async () => {
    for (let n = 0; n < 3; n += 1) await oneShot()
    await waitUntil(() => driver.openCells > 0)
    const memory = 64 * 2 ** 20
    driver.probeResult = { ...driver.probeResult, limits: { ...driver.probeResult.limits, memory: { enforced: true, by: 'a test' } } }
    await engine.probe()
    const shot = await engine.pools.run({ spec: { limits: { memory } } }, { command: 'true' })
    const cell = driver.cells.find(({ spec }) => spec.id === shot.sandbox.id)
    expect([shot.sandbox.spec.limits.memoryBytes, cell?.spec.limits.memoryBytes]).toEqual([memory, memory])
    await collect(shot.program)
    expect((await shot.receipt()).pooled).toBe(false)
    await shot.release()
  })

  test('who it is for makes no class of its own, and is told', async () => {
    for (let n = 0; n < 2; n += 1) await oneShot()
    await waitUntil(() => looks('full') > 2)
    const shot = await engine.pools.run({ spec: { agent: 'b', metadata: { a: '1' }, env: { OWN: 'yes' } } }, { command: 'echo $OWN' })
    expect(shot.sandbox.spec).toMatchObject({ agent: 'b', metadata: { a: '1' } })
    expect((await collect(shot.program)).stdout).toBe('yes\n')
    expect((await shot.receipt()).pooled).toBe(true)
    await shot.release()
  })

  test('with pool: false, mounts or a name are created when they are asked for', async () => {
    for (let n = 0; n < 2; n += 1) await oneShot()
    await waitUntil(() => looks('full') > 2)
    for (const [spec, call] of [
      [{}, { pool: false }],
      [{ name: 'one' }, {}],
    ] as const) {
      const shot = await engine.pools.run({ spec }, { command: 'true' }, call)
      await collect(shot.program)
      expect((await shot.receipt()).pooled).toBe(false)
      await shot.release()
    }
  })

  test('that are wrong are refused, and leave nothing', async () => {
    expect(await rejectionOf(engine.pools.run({ spec: {} }, { command: 'true', cwd: '/nowhere' }))).toMatchObject({ code: 'invalid' })
    expect(await rejectionOf(engine.pools.run({ spec: {} }, { command: 'true' }, { fresh: 'liner' }))).toMatchObject({ code: 'unsupported' })
    expect(await rejectionOf(engine.pools.run({ spec: {} }, { command: 'true' }, { fresh: 'new' as 'cell' }))).toMatchObject({ code: 'invalid' })
    await waitUntil(() => driver.openCells === 0)
  })

  test('that could not be closed are told of when the platform is, and are gone in the end', async () => {
    const pool = await open(0)
    const shot = await engine.pools.run({ pool }, { command: 'true' })
    await collect(shot.program)
    driver.closeFailures = 1
    await shot.release()
    await waitUntil(() => driver.closeFailures === 0)
    await sleep(10)
    expect(await engine.pools.status(pool)).toMatchObject({ total: 1, inUse: 1, failure: 'the cell would not close' })
    await engine.pools.close(pool)
    expect(driver.openCells).toBe(0)
  })
})
