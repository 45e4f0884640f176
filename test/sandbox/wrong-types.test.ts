import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine/engine.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { rejectionOf } from '../engine/collect.js'
import { createPlainEngine, PlainDriver } from '../engine/plain-driver.js'

let driver: PlainDriver
let platform: Engine
let sandbox: Sandbox

beforeEach(async () => {
  driver = new PlainDriver()
  platform = createPlainEngine(driver)
  sandbox = await Sandbox.create({ platform })
})

afterEach(() => platform[Symbol.asyncDispose]())

class Options {
  get env() {
    return { A: 'x' }
  }
}

const noOptions: [unknown, string][] = [
  [5, 'a number'],
  ['x', 'a string'],
  [null, 'null'],
  [[], 'an array'],
  [new Map(), 'a Map'],
  [new Date(), 'a Date'],
  [new Options(), 'an Options'],
]
const noSignals: [unknown, string][] = [
  [5, 'a number'],
  [null, 'null'],
  [{}, 'an object of another kind'],
  [new AbortController(), 'an AbortController'],
]

describe.each(noOptions)('%s', (wrong, kind) => {
  const refused = (field: string) => ({ code: 'invalid', message: `${field}: expected a plain object, got ${kind}` })

  test('is no spec', async () => {
    expect(await rejectionOf(Sandbox.create(wrong as never))).toMatchObject(refused('spec'))
    expect(await rejectionOf(platform.create(wrong as never))).toMatchObject(refused('spec'))
    expect(driver.openCells).toBe(1)
  })

  test('is no limits', async () => {
    expect(await rejectionOf(sandbox.limit(wrong as never))).toMatchObject(refused('limits'))
    expect(await rejectionOf(sandbox.run('true', { limits: wrong as never }))).toMatchObject(refused('limits'))
  })

  test('is no options', async () => {
    expect(await rejectionOf(sandbox.run('true', wrong as never))).toMatchObject(refused('options'))
    expect(await rejectionOf(sandbox.spawn('true', wrong as never))).toMatchObject(refused('options'))
    expect(await rejectionOf(sandbox.info(wrong as never))).toMatchObject(refused('options'))
    expect(await rejectionOf(sandbox.limit({}, wrong as never))).toMatchObject(refused('options'))
    expect(await rejectionOf(sandbox.usage(wrong as never))).toMatchObject(refused('options'))
    expect(await rejectionOf(sandbox.receipt(wrong as never))).toMatchObject(refused('options'))
    expect(await rejectionOf(Sandbox.connect(sandbox.id, wrong as never))).toMatchObject(refused('options'))
    expect(await rejectionOf(Sandbox.closeAll({}, wrong as never))).toMatchObject(refused('options'))
    expect(() => Sandbox.list({}, wrong as never)).toThrow(expect.objectContaining(refused('options')))
    expect(await rejectionOf(platform.create({}, wrong as never))).toMatchObject(refused('options'))
    expect(await rejectionOf(platform.probe(wrong as never))).toMatchObject(refused('options'))
  })
})

test.each(noSignals)('%s is no signal', async (wrong, kind) => {
  const refused = { code: 'invalid', message: `signal: expected an AbortSignal, got ${kind}` }
  const signal = wrong as AbortSignal
  expect(await rejectionOf(Sandbox.create({ platform, signal }))).toMatchObject(refused)
  expect(await rejectionOf(sandbox.run('true', { signal }))).toMatchObject(refused)
  expect(await rejectionOf(sandbox.spawn('true', { signal }))).toMatchObject(refused)
  expect(await rejectionOf(sandbox.limit({}, { signal }))).toMatchObject(refused)
  expect(await rejectionOf(sandbox.usage({ signal }))).toMatchObject(refused)
  expect(await rejectionOf(sandbox.receipt({ signal }))).toMatchObject(refused)
  expect(await rejectionOf(platform.start(sandbox.id, { command: 'true' }, { signal }))).toMatchObject(refused)
})

test.each([
  [5, 'a number'],
  [null, 'null'],
  [{ create: () => undefined }, 'an object of another kind'],
])('%s is no platform', async (wrong, kind) => {
  const message = `platform: expected a platform, such as createPlatform() makes, got ${kind}`
  expect(await rejectionOf(Sandbox.create({ platform: wrong as never }))).toMatchObject({ code: 'invalid', message })
  expect(await rejectionOf(Sandbox.connect(sandbox.id, { platform: wrong as never }))).toMatchObject({ code: 'invalid', message })
})

test('a way at the output limit that there is not is refused by its own name, captured or not', async () => {
  const refused = { code: 'invalid', message: "onOutputLimit: expected one of 'kill', 'truncate'" }
  const run = () => sandbox.run('true', { onOutputLimit: 'x' as never })
  expect(await rejectionOf(run())).toMatchObject(refused)
  expect(await rejectionOf(run()[Symbol.asyncIterator]().next())).toMatchObject(refused)
})

test('a key that would set a prototype is refused on its way through', async () => {
  const refused = { code: 'invalid', message: 'env.__proto__: is not a possible name' }
  const wrong = JSON.parse('{"env":{"__proto__":"x"}}') as object
  expect(await rejectionOf(Sandbox.create({ ...wrong, platform }))).toMatchObject(refused)
  expect(await rejectionOf(sandbox.run('true', wrong))).toMatchObject(refused)
})
