import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine/engine.js'
import { collect, rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'
import { withOther } from '../drivers/bwrap/planted-channel.js'
import { allowAll, answer } from './postures.js'
import { childrenOf, waitUntil } from './processes.js'

let driver: PlainDriver
let engine: Engine

beforeEach(() => {
  driver = new PlainDriver()
  engine = createPlainEngine(driver, { filter: () => Promise.resolve(allowAll) })
})

afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  expect([driver.openCells, driver.cells[0]?.openRuns ?? 0]).toEqual([0, 0])
})

/** Programs that wait at their gate, seen from outside: children of keepers. */
const waiting = (): number[] => childrenOf(driver.cells[0]?.child.pid as number).flatMap(childrenOf)

describe('the first program of a sandbox', () => {
  test('is made ready once the cell was looked at, is looked at in full, and is the one that runs', async () => {
    const asked = answer(driver)
    const { id } = await engine.create({})
    await waitUntil(() => asked.length === 2)
    expect(asked).toMatchObject([{ kind: 'cell' }, { kind: 'program', depth: 'full' }])
    const [pid] = waiting()
    expect((await collect(await engine.start(id, { command: 'echo $$' }))).stdout).toBe(`${pid}\n`)
    expect(asked).toHaveLength(2)
  })

  test('is asked for while the cell opens, where the driver lets it be, and looked at after the cell', async () => {
    const asked = answer(driver)
    driver.tellsEarly = true
    driver.gate = async () => {
      if (driver.cells.length > 0) await waitUntil(() => waiting().length === 1)
    }
    const { id } = await engine.create({})
    const [pid] = waiting()
    await waitUntil(() => asked.length === 2)
    expect(asked).toMatchObject([{ kind: 'cell' }, { kind: 'program', depth: 'full' }])
    expect((await collect(await engine.start(id, { command: 'echo $$' }))).stdout).toBe(`${pid}\n`)
  })

  test('that was begun in another cell than the one that is handed out ends with both of them', async () => {
    const asked = answer(driver)
    driver.tellsEarly = true
    driver.handsOut = (cell) => withOther(cell, {})
    expect(await rejectionOf(engine.create({}))).toMatchObject({
      code: 'internal',
      message: expect.stringContaining('another cell than it launched') as string,
    })
    expect(asked).toEqual([])
  })

  test('of a cell that did not open is over when the driver has begun anew, and that of the next is the one that runs', async () => {
    const { open } = driver
    driver.tellsEarly = true
    driver.open = async (spec, signal) => {
      const failed = await open.call(driver, spec, signal)
      await failed.close()
      return open.call(driver, spec, signal)
    }
    const asked = answer(driver)
    const { id } = await engine.create({})
    await waitUntil(() => asked.length === 2)
    expect((await collect(await engine.start(id, { command: 'echo hello' }))).stdout).toBe('hello\n')
    expect(asked).toHaveLength(2)
  })

  test('of a cell that never opens is gone with it', async () => {
    answer(driver)
    driver.tellsEarly = true
    driver.handsOut = () => {
      throw new Error('not this one')
    }
    const failed = rejectionOf(engine.create({}))
    expect(await failed).toMatchObject({ code: 'broken', message: expect.stringContaining('not this one') as string })
    await driver.cells[0]?.close()
  })

  test('waits however late it is wanted, and one of another kind is started beside it', async () => {
    const asked = answer(driver)
    const { id } = await engine.create({})
    await waitUntil(() => asked.length === 2)
    const [pid] = waiting()
    expect((await collect(await engine.start(id, { command: 'echo other', stdin: true }))).stdout).toBe('other\n')
    await sleep(300)
    expect(waiting()).toEqual([pid])
    expect((await collect(await engine.start(id, { command: 'echo $$' }))).stdout).toBe(`${pid}\n`)
  })

  test('that is not as demanded ends the sandbox', async () => {
    answer(driver, (subject) => (subject.kind === 'program' ? { 'no-new-privs': false } : {}))
    const { id } = await engine.create({})
    await waitUntil(() => driver.openCells === 0)
    expect(await rejectionOf(engine.start(id, { command: 'true' }))).toMatchObject({ code: 'not-enforced' })
  })

  test('of a cell that is not as demanded is never looked at, nor told of', async () => {
    const asked = answer(driver, (subject) => (subject.kind === 'cell' ? { namespaces: { net: 'host', pid: 'own' } } : {}))
    expect(await rejectionOf(engine.create({}))).toMatchObject({ code: 'not-enforced' })
    await sleep(50)
    expect(asked.map(({ kind }) => kind)).toEqual(['cell'])
  })
})
