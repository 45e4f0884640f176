import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Engine } from '../../src/engine/engine.js'
import { collect, rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'
import { allowAll, answer } from './postures.js'

/** Programs that do not get through their gate, by whoever's fault. */

let driver: PlainDriver
let engine: Engine
let id: string
/** What becomes of each program while it is looked at; it is looked at well when this is undefined. */
let atGate: ((pid: number) => Promise<never>) | undefined

beforeEach(async () => {
  driver = new PlainDriver()
  engine = createPlainEngine(driver, { filter: () => Promise.resolve(allowAll), bounds: { answerMs: 3000 } })
  atGate = undefined
  answer(driver)
  const look = driver.posture
  driver.posture = (subject) => (subject.kind === 'program' && atGate ? atGate(subject.pid) : look(subject))
  id = (await engine.create({})).id
})

afterEach(async () => {
  atGate = undefined
  expect((await collect(await engine.start(id, { command: 'exit 5' }))).outcome).toEqual({ kind: 'exited', code: 5 })
  await engine[Symbol.asyncDispose]()
  expect([driver.cells[0]?.openRuns, driver.openCells]).toEqual([0, 0])
})

const never = (): Promise<never> => new Promise(() => undefined)

test('a start that does not come about ends with the time of its run, and the sandbox lives', async () => {
  atGate = never
  const program = await engine.start(id, { command: 'touch ran', timeout: 300 })
  const { outcome, usage, stdout } = await collect(program)
  expect([program.pid, outcome, stdout]).toEqual([0, { kind: 'timed-out', by: 'wall', limitMs: 300 }, ''])
  expect({ ...usage, wallMs: 0 }).toMatchObject({ wallMs: 0, cpuUserMs: 0, cpuSystemMs: 0, memoryPeakBytes: 0, outputBytes: 0 })
  expect(usage.wallMs).toBeGreaterThanOrEqual(299)
  atGate = undefined
  expect((await collect(await engine.start(id, { command: ['ls'] }))).stdout).toBe('')
  expect((await engine.usage(id)).runs).toBe(2)
})

test('a start that does not come about in any time is killed, and the sandbox lives', async () => {
  atGate = never
  const program = await engine.start(id, { command: 'touch ran', background: true })
  expect((await collect(program)).outcome).toEqual({ kind: 'killed', reason: 'it did not start within 3000 ms' })
})

test('a start that does not come about is aborted at once', async () => {
  let isThere: (() => void) | undefined
  const there = new Promise<void>((resolve) => {
    isThere = resolve
  })
  atGate = () => {
    isThere?.()
    return never()
  }
  const controller = new AbortController()
  const starting = engine.start(id, { command: 'touch ran' }, { signal: controller.signal })
  await there
  const reason = new Error('never mind')
  controller.abort(reason)
  expect(await rejectionOf(starting)).toBe(reason)
  expect((await engine.usage(id)).runs).toBe(0)
})

test('a program that was killed for want of memory before it ran is out-of-memory', async () => {
  driver.counts = () => ({ hits: { memory: 1, processes: 0 } })
  atGate = (pid) => {
    process.kill(pid, 'SIGKILL')
    return never()
  }
  const { outcome, usage } = await collect(await engine.start(id, { command: 'touch ran' }))
  expect([outcome, usage.hits]).toEqual([
    { kind: 'out-of-memory', limitBytes: 512 * 2 ** 20 },
    { memory: 1, processes: 0 },
  ])
})

test('a program that another killed before it ran is killed, though nothing was found of it', async () => {
  atGate = (pid) => {
    process.kill(pid, 'SIGKILL')
    return Promise.reject(new Error('it is gone'))
  }
  const { outcome } = await collect(await engine.start(id, { command: 'touch ran' }))
  expect(outcome).toEqual({ kind: 'killed', reason: 'the program was killed by signal 9 before it ran' })
})

test('a streamed run is killed at an output limit that its sandbox states, and a background process is not', async () => {
  await engine.limit(id, { output: 1000 })
  const streamed = await collect(await engine.start(id, { command: 'head -c 5000 /dev/zero; sleep 30' }))
  expect([streamed.outcome, streamed.stdout.length, streamed.truncated]).toEqual([{ kind: 'output-limit', limitBytes: 1000 }, 1000, true])
  const kept = await collect(await engine.start(id, { command: 'head -c 5000 /dev/zero; exit 2', background: true }))
  expect([kept.outcome, kept.stdout.length]).toEqual([{ kind: 'exited', code: 2 }, 5000])
})
