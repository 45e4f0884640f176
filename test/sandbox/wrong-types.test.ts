import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine/engine.js'
import { createPlatform } from '../../src/compose.js'
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

test.each<[object, string]>([
  [{ output: '1m' }, 'output: is not a known field'],
  [{ terminal: { cols: 1, rows: 1 } }, 'terminal: is not a known field'],
  [{ background: true }, 'background: is not a known field'],
  [{ tag: '' }, 'tag: must not be empty'],
])('spawn refuses %j', async (options, message) => {
  expect(await rejectionOf(sandbox.spawn('true', options))).toMatchObject({ code: 'invalid', message })
})

test.each<[object, string]>([
  [{ stdin: 'x' }, 'stdin: is not a known field'],
  [{ terminal: { cols: 1, rows: 1 } }, 'terminal: is not a known field'],
  [{ cols: 0 }, 'cols: must be at least 1, got 0'],
  [{ rows: 'x' }, "rows: expected a finite number, got 'x'"],
])('a terminal refuses %j', async (options, message) => {
  expect(await rejectionOf(sandbox.terminal(options))).toMatchObject({ code: 'invalid', message })
})

test('a run refuses what is for others, and names its own fields', async () => {
  const refusalOf = (options: object) => rejectionOf(sandbox.run('true', options))
  expect(await refusalOf({ tag: 'x' })).toMatchObject({ code: 'invalid', message: 'tag: is not a known field' })
  expect(await refusalOf({ terminal: {} })).toMatchObject({ code: 'invalid', message: 'terminal: is not a known field' })
  expect(await refusalOf({ output: 'x' })).toMatchObject({ code: 'invalid', message: expect.stringMatching(/^output: expected a size/) })
})

test.each<[unknown, string]>([
  [5, 'settings: expected a plain object, got a number'],
  [{ drivrs: [] }, 'drivrs: is not a known field'],
  [{ drivers: 5 }, 'drivers: expected an array, got 5'],
  [{ drivers: [{}] }, 'drivers[0]: expected a driver'],
  [{ cacheDir: 5 }, 'cacheDir: expected a string, got 5'],
  [{ cacheDir: '' }, 'cacheDir: must not be empty'],
  [{ snapshotDir: null }, 'snapshotDir: expected a string, got null'],
  [{ bounds: { maxRuns: 0 } }, 'bounds.maxRuns: must be at least 1, got 0'],
  [{ bounds: { most: 1 } }, 'bounds.most: is not a known field'],
  [{ bounds: [] }, 'bounds: expected a plain object, got an array'],
])('a platform is not made with %j', (settings, message) => {
  expect(() => createPlatform(settings as never)).toThrow(expect.objectContaining({ code: 'invalid', message }))
})

test('stdin is given as pieces of an iterable, or as a buffer', async () => {
  expect((await sandbox.run(['cat'], { stdin: ['a', new Uint8Array([98])] })).stdout).toBe('ab')
  expect((await sandbox.run(['cat'], { stdin: new TextEncoder().encode('whole').buffer })).stdout).toBe('whole')
  expect(await rejectionOf(sandbox.run(['cat'], { stdin: [5] as never }))).toMatchObject({ code: 'invalid' })
})
