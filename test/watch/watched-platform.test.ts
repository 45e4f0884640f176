// What is counted of a platform, over the real engine and the driver without walls.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Platform } from '../../src/contract/platform.js'
import type { OneShot } from '../../src/contract/pools.js'
import { createFakeDriver } from '../../src/drivers/fake/driver.js'
import { meterEvents } from '../../src/watch/event-meters.js'
import { expose } from '../../src/watch/exposition.js'
import { createMeters } from '../../src/watch/meters.js'
import { meterProcess } from '../../src/watch/process-meters.js'
import { Registry } from '../../src/watch/registry.js'
import { watchedPlatform } from '../../src/watch/watched-platform.js'
import { collect, rejectionOf } from '../engine/collect.js'

const spec = { driver: 'fake', minTier: 'none' } as const

let engine: Platform
let platform: Platform
let registry: Registry
let counting: Promise<void>

beforeEach(() => {
  registry = new Registry()
  const meters = createMeters(registry)
  engine = createPlatform({ drivers: [createFakeDriver()] })
  platform = watchedPlatform(engine, { meters })
  counting = meterEvents(engine.events, meters)
})

afterEach(async () => {
  await platform[Symbol.asyncDispose]()
  await counting
})

/** The lines that begin so, as `labels value`. */
function told(name: string): string[] {
  return expose(registry.read())
    .text.split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .map((line) => line.slice(name.length).trim())
}

test('sandboxes are counted by driver and pool, live ones as long as they live, and ended ones by the code of the reason', async () => {
  const { id } = await platform.create(spec)
  expect(told('glovebox_create_duration_seconds_count')).toEqual(['{call="create",driver="fake",pool="none"} 1'])
  await expect.poll(() => told('glovebox_sandboxes_live')).toEqual(['{fresh="cell"} 1'])
  await platform.close(id)
  await expect.poll(() => told('glovebox_sandboxes_live')).toEqual(['{fresh="cell"} 0'])
  expect(told('glovebox_sandboxes_closed_total')).toEqual(['{code="closed"} 1'])
})

test('runs are counted by outcome, limits by name, errors by call and code', async () => {
  const { id } = await platform.create(spec)
  await collect(await platform.start(id, { command: ['true'] }))
  await collect(await platform.start(id, { command: ['sleep', '60'], timeout: '30ms' }))
  expect(await rejectionOf(platform.start(id, { command: [] }))).toMatchObject({ code: 'invalid' })
  expect(await rejectionOf(platform.files.of(id).copy('nowhere', 'there'))).toMatchObject({ code: 'not-found' })
  expect(told('glovebox_runs_total')).toEqual(['{kind="run",outcome="exited"} 1', '{kind="run",outcome="timed-out"} 1'])
  await expect.poll(() => told('glovebox_limits_hit_total')).toEqual(['{limit="time"} 1'])
  expect(told('glovebox_errors_total')).toEqual(['{call="start",code="invalid"} 1', '{call="files.copy",code="not-found"} 1'])
  expect(told('glovebox_start_duration_seconds_count')).toEqual(['{kind="run"} 2'])
})

test('one-shots and code are counted, pools by how many wait', async () => {
  const shot = await platform.pools.run({ spec }, { command: ['true'] })
  await collect(shot.program)
  await shot.release()
  expect(told('glovebox_runs_total')).toEqual(['{kind="one-shot",outcome="exited"} 1'])
  const { id } = await platform.create(spec)
  const execution = await platform.code.execute(id, { code: 'echo hi', language: 'bash' })
  for await (const _ of execution.events) continue
  await execution.ended
  expect(told('glovebox_executions_total')).toEqual(['{language="bash",status="ok"} 1'])
  const pool = await platform.pools.create(spec, { size: 2 })
  await expect.poll(() => told('glovebox_pool_sandboxes')).toContain('{pool="created",state="available"} 2')
  await platform.pools.close(pool.id)
  await expect.poll(() => told('glovebox_pool_sandboxes')).toContain('{pool="created",state="all"} 0')
})

test('no label is an id, or a name that somebody chose', async () => {
  const { id } = await platform.create({ ...spec, name: 'my-name', agent: 'my-agent', metadata: { k: 'my-value' } })
  await collect(await platform.start(id, { command: ['echo', 'my-words'], tag: 'my-tag', background: true }))
  await platform.close(id)
  await expect.poll(() => told('glovebox_sandboxes_closed_total')).toHaveLength(1)
  const { text } = expose(registry.read())
  expect(text).not.toContain('my-')
  expect(text).not.toContain(id)
})

test('what is handed out is what the engine handed out: the same program, the same streams', async () => {
  const same: unknown[] = []
  const spied = { ...bare(), start: () => Promise.resolve(program as never) }
  const program = { ended: Promise.resolve({ outcome: { kind: 'exited', code: 0 }, usage: { wallMs: 1 } }), output: {} }
  same.push(await watchedPlatform(spied, { meters: createMeters(new Registry()) }).start('a', { command: ['true'] }))
  expect(same[0]).toBe(program)
})

test('watching a one-shot costs less than 50 µs', async () => {
  const shot = {
    sandbox: { driver: 'fake', id: 'a' },
    program: { ended: Promise.resolve({ outcome: { kind: 'exited', code: 0 }, usage: { wallMs: 1 } }) },
  } as unknown as OneShot
  const plain = { ...bare(), pools: { run: () => Promise.resolve(shot) } as unknown as Platform['pools'] }
  const watched = watchedPlatform(plain, { meters: createMeters(new Registry()) })
  const cost = async ({ pools }: Platform): Promise<number> => {
    const begin = performance.now()
    for (let n = 0; n < 5000; n += 1) await pools.run({ spec: {} }, { command: ['true'] })
    return (performance.now() - begin) / 5000
  }
  const rounds: number[] = []
  for (let round = 0; round < 7; round += 1) rounds.push((await cost(watched)) - (await cost(plain)))
  const [, , , median] = rounds.sort((a, b) => a - b)
  expect((median ?? Infinity) * 1000).toBeLessThan(50)
})

test('the process tells its memory, its descriptors and how late its event loop is', () => {
  using _ = meterProcess(registry, { openDescriptors: () => 17 })
  expect(told('process_open_fds')).toEqual(['17'])
  expect(Number(told('process_resident_memory_bytes')[0])).toBeGreaterThan(10 * 2 ** 20)
  expect(told('process_cpu_seconds_total')).toHaveLength(1)
  expect(told('glovebox_event_loop_lag_seconds')).toHaveLength(3)
})

/** A platform of which only one call is made. */
function bare(): Platform {
  const facets = ['changes', 'code', 'events', 'files', 'snapshots', 'life', 'network', 'pools', 'ports', 'processes']
  return Object.fromEntries(facets.map((name) => [name, {}])) as unknown as Platform
}
