import { mkdir, writeFile } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import type { Platform, SandboxFilter } from '../../src/contract/platform.js'
import type { Engine } from '../../src/engine/engine.js'
import { collect, rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver, plainProbe } from './plain-driver.js'
import { isRunning, markedSleep, waitUntil } from './processes.js'

let driver: PlainDriver
let engine: Engine

beforeEach(() => {
  driver = new PlainDriver()
  engine = createPlainEngine(driver)
})

afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  expect(driver.openCells).toBe(0)
})

async function namesOf(platform: Platform, filter?: SandboxFilter): Promise<(string | undefined)[]> {
  const names = []
  for await (const { spec } of platform.list(filter)) names.push(spec.name)
  return names
}

describe('a sandbox', () => {
  test('is told with its spec, its driver and what is not enforced', async () => {
    const before = Date.now()
    const info = await engine.create({ name: 'first', lifetime: '1m' })
    expect(info).toMatchObject({ state: 'running', driver: 'plain', tier: 'process', spec: { name: 'first', lifetimeMs: 60_000 } })
    expect(info.id).toMatch(/^[a-z0-9]{20}$/)
    expect(Date.parse(info.createdAt)).toBeGreaterThanOrEqual(before)
    expect(Date.parse(info.expiresAt) - Date.parse(info.createdAt)).toBe(60_000)
    expect(info.unenforced.map(({ limit }) => limit)).toEqual(['memory', 'cpus', 'disk', 'inodes', 'fileSize', 'openFiles', 'processes'])
    expect(await engine.info(info.id)).toEqual(info)
  })

  test('is found by name, agent and metadata, and closed by them', async () => {
    await engine.create({ name: 'a', agent: 'x', metadata: { pr: '1' } })
    await engine.create({ name: 'b', agent: 'x', metadata: { pr: '2' } })
    await engine.create({ name: 'c', agent: 'y' })
    expect(await namesOf(engine)).toEqual(['a', 'b', 'c'])
    expect(await namesOf(engine, { agent: 'x' })).toEqual(['a', 'b'])
    expect(await namesOf(engine, { agent: 'x', metadata: { pr: '2' } })).toEqual(['b'])
    expect(await engine.closeAll({ agent: 'x' })).toBe(2)
    expect(await namesOf(engine)).toEqual(['c'])
    expect(driver.openCells).toBe(1)
    expect(await engine.closeAll()).toBe(1)
    expect(await engine.closeAll()).toBe(0)
  })

  test('that there is not is not-found, and an id that cannot be one invalid', async () => {
    expect(await rejectionOf(engine.info('a'.repeat(20)))).toMatchObject({ code: 'not-found', message: `there is no sandbox ${'a'.repeat(20)} here` })
    expect(await rejectionOf(engine.start('x', { command: 'true' }))).toMatchObject({ code: 'invalid' })
    await engine.close('a'.repeat(20))
  })

  test('beyond the allowed number is busy', async () => {
    const small = createPlainEngine(driver, { bounds: { maxSandboxes: 2 } })
    const [first] = await Promise.all([small.create({}), small.create({})])
    expect(await rejectionOf(small.create({}))).toMatchObject({ code: 'busy', retryable: true })
    await small.close(first.id)
    await small.create({})
    await small[Symbol.asyncDispose]()
  })
})

describe('closing', () => {
  test('twice is quiet, one after the other and at once, and every later call is told', async () => {
    const { id } = await engine.create({})
    await Promise.all([engine.close(id), engine.close(id)])
    await engine.close(id)
    expect(driver.openCells).toBe(0)
    for (const call of [engine.info(id), engine.start(id, { command: 'true' })]) {
      expect(await rejectionOf(call)).toMatchObject({ code: 'closed', message: `sandbox ${id} was closed` })
    }
    expect(await namesOf(engine)).toEqual([])
  })

  test('during a run rejects its end and its output as closed, and leaves no process', async () => {
    const { id } = await engine.create({})
    const { marker, command } = markedSleep()
    const program = await engine.start(id, { command: `setsid ${command} & ${command}` })
    const reading = rejectionOf(collect(program))
    await waitUntil(() => isRunning(marker))
    await engine.close(id)
    expect(isRunning(marker)).toBe(false)
    expect(await rejectionOf(program.ended)).toMatchObject({ code: 'closed' })
    expect(await reading).toMatchObject({ code: 'closed' })
    await program.kill()
    expect(await rejectionOf(program.write(new Uint8Array(1)))).toMatchObject({ code: 'closed', message: `sandbox ${id} was closed` })
    await program.signal('SIGTERM')
  })

  test('while a program is being started rejects the start as closed', async () => {
    const { id } = await engine.create({})
    const starting = rejectionOf(engine.start(id, { command: 'sleep 30' }).then((program) => program.ended))
    await engine.close(id)
    expect(await starting).toMatchObject({ code: 'closed' })
  })

  test('that went wrong is told, and can be tried again', async () => {
    const { id } = await engine.create({})
    driver.closeFailures = 1
    expect(await rejectionOf(engine.close(id))).toMatchObject({ message: 'the cell would not close' })
    expect(await rejectionOf(engine.info(id))).toMatchObject({ code: 'closed' })
    await engine.close(id)
    expect(driver.openCells).toBe(0)
  })

  test('the platform closes all, and it makes no more', async () => {
    await Promise.all([engine.create({}), engine.create({}), engine.create({})])
    await engine[Symbol.asyncDispose]()
    expect(driver.openCells).toBe(0)
    expect(await rejectionOf(engine.create({}))).toMatchObject({ code: 'closed' })
  })
})

describe('expiry', () => {
  test('ends what runs, answers expired by name, and leaves nothing', async () => {
    const { id } = await engine.create({ lifetime: 3000 })
    const { marker, command } = markedSleep()
    const program = await engine.start(id, { command })
    const error = (await rejectionOf(collect(program))) as SandboxError
    expect([error.code, error.message]).toEqual(['expired', expect.stringContaining(`sandbox ${id} expired at 2`)])
    await waitUntil(() => driver.openCells === 0)
    expect(isRunning(marker)).toBe(false)
    expect(await rejectionOf(engine.start(id, { command: 'true' }))).toMatchObject({ code: 'expired' })
    await engine.close(id)
  })

  test('comes no sooner for a lifetime that is longer than a timer can be', async () => {
    const { id } = await engine.create({ lifetime: '30d' })
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect((await engine.info(id)).state).toBe('running')
  })
})

describe('a cell that dies on its own', () => {
  test('breaks its runs with what is known of it, and is cleared away', async () => {
    const { id } = await engine.create({})
    const program = await engine.start(id, { command: 'sleep 30' })
    driver.cells[0]?.child.kill('SIGKILL')
    const error = (await rejectionOf(collect(program))) as SandboxError
    expect(error.code).toBe('broken')
    expect(error.message).toBe(`the cell of sandbox ${id} ended: the channel to the warden ended`)
    expect(driver.openCells).toBe(0)
    expect(await rejectionOf(engine.start(id, { command: 'true' }))).toMatchObject({ code: 'broken' })
    await engine.close(id)
  })

  test.each(['start a program', 'kill a run'])('or is too stuck to %s is given up', async (act) => {
    const impatient = createPlainEngine(driver, { bounds: { answerMs: 3000 } })
    const { id } = await impatient.create({})
    const program = await impatient.start(id, { command: 'sleep 30', ...(act === 'kill a run' && { timeout: 1500 }) })
    driver.cells[0]?.child.kill('SIGSTOP')
    const stuck = act === 'kill a run' ? collect(program) : impatient.start(id, { command: 'true' })
    const message = `the cell of sandbox ${id} ended: the warden did not ${act === 'kill a run' ? act : 'start or kill a program'} within 3000 ms`
    expect(await rejectionOf(stuck)).toMatchObject({ code: 'broken', message })
    expect(driver.openCells).toBe(0)
  })

  test('is noticed without anyone asking', async () => {
    await engine.create({})
    driver.cells[0]?.child.kill('SIGKILL')
    await waitUntil(() => driver.openCells === 0)
    expect(await namesOf(engine)).toEqual([])
  })
})

describe('creating', () => {
  test('what is wrong is refused before anything is asked or opened', async () => {
    expect(await rejectionOf(engine.create({ nonsense: 1 } as never))).toMatchObject({ code: 'invalid', message: 'nonsense: is not a known field' })
    expect([driver.probes, driver.cells.length]).toEqual([0, 0])
  })

  test('with a template that there is not opens nothing', async () => {
    const failing = createPlainEngine(driver, {
      templates: { resolve: async (name) => Promise.reject(new SandboxError('invalid', `template: there is no '${name}'`)) },
    })
    expect(await rejectionOf(failing.create({ template: 'nope' }))).toMatchObject({ code: 'invalid' })
    expect(driver.cells).toHaveLength(0)
  })

  test('aborted beforehand rejects with the reason', async () => {
    const reason = new Error('no')
    expect(await rejectionOf(engine.create({}, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect(driver.cells).toHaveLength(0)
  })

  test.each([1, 2])('aborted while the cell opens (moment %i) rejects with the reason and leaves nothing', async (moment) => {
    const controller = new AbortController()
    const reason = new Error('changed my mind')
    let passed = 0
    driver.gate = () => {
      passed += 1
      if (passed === moment) controller.abort(reason)
      return Promise.resolve()
    }
    expect(await rejectionOf(engine.create({}, { signal: controller.signal }))).toBe(reason)
    expect(driver.openCells).toBe(0)
    expect(await namesOf(engine)).toEqual([])
  })

  test.each([1, 2])('is called off when all are closed meanwhile (moment %i)', async (moment) => {
    let passed = 0
    let closing: Promise<number> | undefined
    driver.gate = () => {
      passed += 1
      if (passed === moment) closing = engine.closeAll()
      return Promise.resolve()
    }
    expect(await rejectionOf(engine.create({}))).toMatchObject({ code: 'closed' })
    expect(await closing).toBe(0)
    expect(driver.openCells).toBe(0)
  })

  test('is left alone when only others are closed', async () => {
    let closing: Promise<number> | undefined
    driver.gate = () => {
      closing ??= engine.closeAll({ name: 'other' })
      return Promise.resolve()
    }
    await engine.create({ name: 'this' })
    await closing
    expect(await namesOf(engine)).toEqual(['this'])
  })

  test('fails as broken, with the warden’s own words, when it does not answer', async () => {
    driver.argv = () => ['/bin/sh', '-c', 'echo "warden: mount /tmp: no such device" >&2; exit 70']
    const error = (await rejectionOf(engine.create({}))) as SandboxError
    expect([error.code, error.message]).toEqual([
      'broken',
      expect.stringMatching(/^the cell of sandbox \w+ ended: .* \(warden: mount \/tmp: no such device\)$/),
    ])
    expect(driver.openCells).toBe(0)
  })

  test('is given up when the cell does not open', async () => {
    const impatient = createPlainEngine(driver, { bounds: { answerMs: 100 } })
    driver.argv = () => ['/bin/cat']
    const error = await rejectionOf(impatient.create({}))
    expect(error).toMatchObject({ code: 'broken', message: 'a cell did not open within 100 ms' })
    expect(driver.openCells).toBe(0)
  })

  test('asks a driver that works once, and one that does not again', async () => {
    driver.probeResult = { ...plainProbe, available: false, obstacles: [{ what: 'x', why: 'is missing', hint: 'get x' }] }
    expect(await rejectionOf(engine.create({}))).toMatchObject({ code: 'unavailable', hint: 'get x' })
    driver.probeResult = plainProbe
    await Promise.all([engine.create({}), engine.create({})])
    await engine.create({})
    expect(driver.probes).toBe(2)
    expect(await engine.probe()).toEqual([plainProbe])
    expect(driver.probes).toBe(3)
  })

  test('tells a disk on which nothing can be kept as an obstacle of the machine, not as a defect', async () => {
    driver.probeResult = { ...plainProbe, filtersSyscalls: true }
    const full = () => writeFile('/dev/full', 'x').then(() => Promise.reject(new Error('there was space')))
    const unwritable = () => mkdir('/proc/version/x').then(() => Promise.reject(new Error('it could be made')))
    const withFilter = createPlainEngine(driver, { filter: full })
    expect(await rejectionOf(withFilter.create({}))).toMatchObject({ code: 'unavailable', message: 'the disk: no space left (ENOSPC)', hint: 'df -h' })
    const withTemplates = createPlainEngine(driver, { templates: { resolve: unwritable } })
    expect(await rejectionOf(withTemplates.create({}))).toMatchObject({
      code: 'unavailable',
      message: '/proc/version/x: has something in its path that is not a folder (ENOTDIR)',
    })
  })

  test('hands the filter to the warden of a driver that filters, compiled once', async () => {
    const allowAll = new Uint8Array([0x06, 0, 0, 0, 0, 0, 0xff, 0x7f])
    let compiled = 0
    const filter = () => {
      compiled += 1
      return Promise.resolve(allowAll)
    }
    driver.probeResult = { ...plainProbe, filtersSyscalls: true }
    const filtering = createPlainEngine(driver, { filter })
    const [{ id }] = await Promise.all([filtering.create({}), filtering.create({})])
    const { stdout } = await collect(await filtering.start(id, { command: 'grep Seccomp: /proc/self/status' }))
    expect([stdout, compiled]).toEqual(['Seccomp:\t2\n', 1])
    await filtering[Symbol.asyncDispose]()
  })

  test('twenty at once, used and closed in any order, leave nothing', async () => {
    const codes = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const { id } = await engine.create({ name: String(index) })
        const { outcome } = await collect(await engine.start(id, { command: `exit ${index}` }))
        if (index % 2) await engine.close(id)
        return outcome
      }),
    )
    expect(codes).toEqual(Array.from({ length: 20 }, (_, code) => ({ kind: 'exited', code })))
    expect(driver.openCells).toBe(10)
  })
})
