import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Enforcement } from '../../src/contract/driver.js'
import { SandboxError } from '../../src/contract/errors.js'
import type { RunRequest } from '../../src/contract/run.js'
import type { Engine } from '../../src/engine/engine.js'
import { parsePolicy } from '../../src/policy/policy-file.js'
import { collect, type Collected, rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver, plainProbe } from './plain-driver.js'
import { isRunning, markedSleep, waitUntil } from './processes.js'

const MiB = 2 ** 20
const held: Enforcement = { enforced: true, by: 'a test' }

let driver: PlainDriver
let engine: Engine
let id: string

beforeEach(async () => {
  driver = new PlainDriver()
  const { limits } = plainProbe
  driver.probeResult = { ...plainProbe, limits: { ...limits, memory: held, processes: held, cpuTime: held, fileSize: held, openFiles: { ...held, max: 4096 } } }
  engine = createPlainEngine(driver)
  id = (await engine.create({})).id
})

afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  expect(driver.cells.map(({ openRuns, isClosed }) => [openRuns, isClosed])).toEqual(driver.cells.map(() => [0, true]))
})

async function run(request: RunRequest): Promise<Collected> {
  return collect(await engine.start(id, request))
}

describe('processor time', () => {
  test('that is used up ends a run with all its descendants as timed-out by cpu', async () => {
    const { marker, command } = markedSleep()
    let cpuMs = 0
    driver.counts = () => ({ cpuMs: (cpuMs += 40) })
    const { outcome, usage } = await run({ command: `setsid ${command} & ${command}`, limits: { cpuTime: 200 } })
    expect(outcome).toEqual({ kind: 'timed-out', by: 'cpu', limitMs: 200 })
    expect(usage.cpuUserMs + usage.cpuSystemMs).toBeGreaterThanOrEqual(200)
    expect(isRunning(marker)).toBe(false)
  })

  test('is counted on when the program has ended: what it left behind is killed once all is used, and its outcome stays', async () => {
    const { marker, command } = markedSleep()
    let cpuMs = 10
    driver.counts = () => ({ cpuMs })
    driver.isPopulated = () => true
    const { outcome } = await run({ command: `setsid ${command} >/dev/null 2>&1 & exit 3`, limits: { cpuTime: 200 } })
    expect(outcome).toEqual({ kind: 'exited', code: 3 })
    await waitUntil(() => isRunning(marker))
    await sleep(400)
    expect(isRunning(marker)).toBe(true)
    cpuMs = 200
    await waitUntil(() => !isRunning(marker))
    expect((await run({ command: 'exit 4' })).outcome).toEqual({ kind: 'exited', code: 4 })
  })

  test('of what was left behind is counted no longer than it lives, and no longer than its sandbox', async () => {
    let [looks, isPopulated] = [0, true]
    driver.counts = () => ({ cpuMs: 1 })
    driver.isPopulated = () => {
      looks += 1
      return isPopulated
    }
    await run({ command: 'true', limits: { cpuTime: 100 } })
    await waitUntil(() => looks > 2)
    isPopulated = false
    const last = looks + 1
    await waitUntil(() => looks >= last)
    await sleep(400)
    expect(looks).toBe(last)
    isPopulated = true
    await run({ command: 'true', limits: { cpuTime: 100 } })
    await engine.close(id)
    const atEnd = looks
    await sleep(300)
    expect(looks).toBe(atEnd)
  })

  test('that is not used up ends nothing, however long the run waits', async () => {
    driver.counts = () => ({ cpuMs: 1 })
    expect((await run({ command: 'sleep 0.4; exit 6', limits: { cpuTime: 50 } })).outcome).toEqual({ kind: 'exited', code: 6 })
  })

  test('of a single process is bounded by the kernel too, and that is told as the same', async () => {
    expect((await run({ command: 'ulimit -t', limits: { cpuTime: '1500ms' } })).stdout).toBe('3\n')
    driver.counts = () => ({ cpuMs: 900 })
    expect((await run({ command: 'kill -XCPU $$; sleep 5', limits: { cpuTime: 800 } })).outcome).toEqual({ kind: 'timed-out', by: 'cpu', limitMs: 800 })
    expect((await run({ command: 'kill -XCPU $$; sleep 5', limits: { cpuTime: 1000 } })).outcome).toEqual({ kind: 'signaled', signal: 'SIGXCPU' })
  })
})

describe('a run', () => {
  test('is begun with the limits it states, and no others', async () => {
    await run({ command: ['true'] })
    await run({ command: ['true'], limits: { processes: 9 } })
    expect(driver.cells[0]?.runs).toEqual([
      { memoryBytes: undefined, processes: undefined },
      { memoryBytes: undefined, processes: 9 },
    ])
  })

  test('is held to its own sizes of files and number of descriptors', async () => {
    const script = 'ulimit -Hn; ulimit -f; ulimit -c'
    expect((await run({ command: script })).stdout).toBe(`4096\n${(100 * MiB + 4096) / 512}\n0\n`)
    expect((await run({ command: script, limits: { openFiles: 32, fileSize: '1m' } })).stdout).toBe(`32\n${MiB / 512}\n0\n`)
  })

  test('cannot state a memory that nothing counts for it alone', async () => {
    const error = await rejectionOf(engine.start(id, { command: ['true'], limits: { memory: '64m' } }))
    expect(error).toMatchObject({ code: 'unsupported', message: 'limits.memory cannot be enforced for a single run: nothing here counts its memory by itself' })
  })

  test('cannot state what nothing enforces', async () => {
    driver.probeResult = plainProbe
    const loose = createPlainEngine(driver)
    const sandbox = await loose.create({})
    const error = await rejectionOf(loose.start(sandbox.id, { command: ['true'], limits: { cpuTime: '1s', openFiles: 20 } }))
    expect(error).toMatchObject({
      code: 'unsupported',
      message: 'limits.cpuTime cannot be enforced: there are no walls; limits.openFiles cannot be enforced: there are no walls',
    })
    await loose[Symbol.asyncDispose]()
  })

  test('is told by what was counted of it as a whole', async () => {
    driver.counts = () => ({ cpuMs: 500, memoryPeakBytes: 7 * MiB, processesPeak: 3, hits: { memory: 0, processes: 12 } })
    const { usage } = await run({ command: 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; printf 123' })
    expect(usage).toMatchObject({ memoryPeakBytes: 7 * MiB, processesPeak: 3, outputBytes: 3, hits: { memory: 0, processes: 12 } })
    expect(usage.cpuUserMs + usage.cpuSystemMs).toBeCloseTo(500, 2)
    expect(usage.cpuUserMs).toBeGreaterThan(usage.cpuSystemMs)
  })

  test('that nothing counts is told by what its program waited for', async () => {
    const { usage } = await run({ command: 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done' })
    expect(usage).toMatchObject({ processesPeak: null, hits: { memory: null, processes: null } })
    expect(usage.cpuUserMs).toBeGreaterThan(0)
    expect(usage.memoryPeakBytes).toBeGreaterThan(100_000)
  })
})

describe('a live sandbox', () => {
  test('gets new limits, and later runs are held to them', async () => {
    const info = await engine.limit(id, { memory: '1g', time: '1s', openFiles: 64, output: '1k' })
    expect(info.spec.limits).toMatchObject({ memoryBytes: 2 ** 30, timeMs: 1000, openFiles: 64, outputBytes: 1024, processes: 64 })
    expect(info.spec.limits.stated).toEqual(['memory', 'time', 'openFiles', 'output'])
    expect(await engine.info(id)).toEqual(info)
    expect(driver.cells[0]?.changes).toEqual([info.spec.limits])
    expect((await run({ command: 'ulimit -Hn' })).stdout).toBe('64\n')
    expect((await run({ command: 'sleep 30' })).outcome).toEqual({ kind: 'timed-out', by: 'wall', limitMs: 1000 })
  })

  test('keeps those it has when nothing is changed', async () => {
    expect(await engine.limit(id, {})).toEqual(await engine.info(id))
    expect(driver.cells[0]?.changes).toEqual([])
  })

  test.each([
    [{ memory: 'lots' }, 'invalid', /^limits\.memory: expected a size such as '512m'/],
    [{ cpus: 0 }, 'invalid', /^limits\.cpus: /],
    [{ time: '1s', what: 1 }, 'invalid', /^limits\.what: is not a known field$/],
    [null, 'invalid', /^limits: expected a plain object, got null$/],
    [{ time: '1s', cpus: 0.5 }, 'unsupported', /^limits\.cpus cannot be enforced: there are no walls$/],
    [{ time: '1s', openFiles: 5000 }, 'unsupported', /^limits\.openFiles: 5000 is above the 4096 that can be enforced \(a test\)$/],
  ])('keeps all its limits when one of %j is refused', async (change, code, message) => {
    const before = await engine.info(id)
    const error = (await rejectionOf(engine.limit(id, change as never))) as SandboxError
    expect([error.code, error.message]).toEqual([code, expect.stringMatching(message)])
    expect(await engine.info(id)).toEqual(before)
    expect(driver.cells[0]?.changes).toEqual([])
  })

  test('keeps all its limits when its cell refuses', async () => {
    const before = await engine.info(id)
    driver.limit = () => Promise.reject(new SandboxError('conflict', 'limits.memory: 96m are in use'))
    expect(await rejectionOf(engine.limit(id, { memory: '64m' }))).toMatchObject({ code: 'conflict' })
    expect(await engine.info(id)).toEqual(before)
    driver.limit = () => Promise.resolve()
    await engine.limit(id, { memory: '64m' })
  })

  test('gets changes made at once one after the other', async () => {
    await Promise.all([engine.limit(id, { memory: '64m' }), rejectionOf(engine.limit(id, { memory: -1 })), engine.limit(id, { processes: 9 })])
    expect((await engine.info(id)).spec.limits).toMatchObject({ memoryBytes: 64 * MiB, processes: 9 })
  })

  test('is held to the caps of its operator', async () => {
    const policy = parsePolicy({ name: 'house', ceiling: { limits: { memory: '128m' } } })
    const capped = createPlainEngine(driver, { policy })
    const sandbox = await capped.create({ limits: { memory: '64m' } })
    expect(await rejectionOf(capped.limit(sandbox.id, { memory: '1g' }))).toMatchObject({ code: 'invalid', message: expect.stringContaining('house') })
    expect((await capped.limit(sandbox.id, { memory: '100m' })).spec.limits.memoryBytes).toBe(100 * MiB)
    await capped[Symbol.asyncDispose]()
  })

  test('that is closed has no limits, no usage and no receipt', async () => {
    await engine.close(id)
    for (const call of [engine.limit(id, { time: '1s' }), engine.usage(id), engine.receipt(id)]) {
      expect(await rejectionOf(call)).toMatchObject({ code: 'closed' })
    }
  })
})

describe('the usage of a sandbox', () => {
  test('is that of all its runs together', async () => {
    const runs = [await run({ command: 'printf 12345' }), await run({ command: 'printf 12 >&2; sleep 0.05' }), await run({ command: ['no-such-program'] })]
    const usage = await engine.usage(id)
    const sum = (name: 'wallMs' | 'cpuUserMs' | 'cpuSystemMs') => runs.reduce((total, each) => total + each.usage[name], 0)
    expect(usage).toMatchObject({ outputBytes: 7, runs: 3, memoryBytes: null, processes: null, processesPeak: null, hits: { memory: null, processes: null } })
    expect(usage.wallMs).toBeCloseTo(sum('wallMs'), 1)
    expect(usage.cpuMs).toBeCloseTo(sum('cpuUserMs') + sum('cpuSystemMs'), 1)
    expect(usage.memoryPeakBytes).toBe(Math.max(...runs.map((each) => each.usage.memoryPeakBytes)))
  })

  test('is what its cell counts, where it does', async () => {
    driver.counts = () => ({ cpuMs: 1234, memoryPeakBytes: 2 ** 40, processesPeak: 5, hits: { memory: 2, processes: 3 } })
    await run({ command: ['true'] })
    expect(await engine.usage(id)).toMatchObject({ cpuMs: 1234, memoryPeakBytes: 2 ** 40, processesPeak: 5, hits: { memory: 2, processes: 3 } })
  })

  test('has what runs in it, and not what never came about', async () => {
    const program = await engine.start(id, { command: 'printf 123; sleep 30' })
    for await (const _ of program.output) break
    await rejectionOf(engine.start(id, { command: 'true', cwd: '/no/such/folder' }))
    const usage = await engine.usage(id)
    expect(usage).toMatchObject({ runs: 1, outputBytes: 3 })
    expect(usage.wallMs).toBeGreaterThan(0)
    await program.kill()
  })
})
