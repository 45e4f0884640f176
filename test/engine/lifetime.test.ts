import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import type { SandboxEvent } from '../../src/contract/lifetimes.js'
import type { SandboxInfo } from '../../src/contract/platform.js'
import type { Engine } from '../../src/engine/engine.js'
import { parsePolicy } from '../../src/policy/policy-file.js'
import { collect, rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver, plainProbe } from './plain-driver.js'
import { settled } from './processes.js'

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

const restOf = ({ expiresAt }: SandboxInfo): number => Date.parse(expiresAt) - Date.now()

async function untilOver(id: string, on = engine): Promise<SandboxError> {
  for (;;) {
    const error = await on.info(id).then(
      () => undefined,
      (reason: unknown) => reason as SandboxError,
    )
    if (error) return error
    await sleep(5)
  }
}

/** All that is told until it is closed. */
async function gather(id: string): Promise<SandboxEvent[]> {
  const events = []
  for await (const event of engine.life.events(id)) events.push(event)
  return events
}

describe('a lifetime', () => {
  test('is extended, never shortened', async () => {
    const { id } = await engine.create({ lifetime: '1m' })
    expect(restOf(await engine.life.extend(id, '10s'))).toBeGreaterThan(58_000)
    const info = await engine.life.extend(id, '5m')
    expect(restOf(info)).toBeGreaterThan(298_000)
    expect(restOf(info)).toBeLessThanOrEqual(300_000)
    expect(await engine.info(id)).toEqual(info)
  })

  test('is set, also to a shorter one, which then holds', async () => {
    const { id } = await engine.create({ lifetime: '1m' })
    expect(restOf(await engine.life.setLifetime(id, 150))).toBeLessThanOrEqual(150)
    expect(await untilOver(id)).toMatchObject({ code: 'expired', message: expect.stringContaining('its lifetime is over') as string })
  })

  test('that is extended outlives its first end', async () => {
    const info = await engine.create({ lifetime: 2000 })
    await engine.life.extend(info.id, '1m')
    await sleep(restOf(info) + 200)
    expect((await engine.info(info.id)).state).toBe('running')
  })

  test('that is none is refused by its name, and changes nothing', async () => {
    const { id, expiresAt } = await engine.create({ lifetime: '1m' })
    for (const duration of [0, -1, 1.5, '5', 'soon', null, Number.NaN, '31d'] as number[])
      for (const change of [engine.life.extend(id, duration), engine.life.setLifetime(id, duration)])
        expect(await rejectionOf(change)).toMatchObject({ code: 'invalid', message: expect.stringContaining('duration: ') as string })
    expect((await engine.info(id)).expiresAt).toBe(expiresAt)
  })

  test('stays within what a policy allows, counted from its creation', async () => {
    const capped = createPlainEngine(driver, { policy: parsePolicy({ ceiling: { lifetime: '1m' } }, 'operator') })
    const { id } = await capped.create({ lifetime: '50s' })
    await sleep(1100)
    await capped.life.extend(id, '55s')
    expect(await rejectionOf(capped.life.extend(id, '1m'))).toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/^duration: 1m more after [1-4](\.\d)?s is above the 1m that policy 'operator' allows$/) as string,
    })
    expect(await rejectionOf(capped.life.setLifetime(id, '1m'))).toMatchObject({ code: 'invalid' })
    await capped[Symbol.asyncDispose]()
  })

  test('above the cap of a policy that lowers gets what is left', async () => {
    const capped = createPlainEngine(driver, { policy: parsePolicy({ ceiling: { lifetime: '1m' }, onExceed: 'clamp' }, 'operator') })
    const { id } = await capped.create({ lifetime: '10s' })
    const rest = restOf(await capped.life.extend(id, '1h'))
    expect(rest).toBeGreaterThan(50_000)
    expect(rest).toBeLessThanOrEqual(60_000)
    await capped[Symbol.asyncDispose]()
  })
})

describe('an idle sandbox', () => {
  test('expires though its lifetime goes on, and is told why', async () => {
    const { id } = await engine.create({ idle: 200 })
    const events = gather(id)
    const begun = performance.now()
    expect(await untilOver(id)).toMatchObject({ code: 'expired', message: expect.stringContaining('it was idle for 200ms') as string })
    expect(performance.now() - begun).toBeGreaterThan(150)
    expect((await events).map(({ type }) => type)).toEqual(['expired', 'closed'])
  })

  test('is none while a run is in progress, however quiet', async () => {
    const { id } = await engine.create({ idle: 200 })
    expect((await collect(await engine.start(id, { command: 'sleep 0.7; echo done' }))).stdout).toBe('done\n')
    expect(await untilOver(id)).toMatchObject({ code: 'expired' })
  })

  test('is one though a background process sleeps in it', async () => {
    const { id } = await engine.create({ idle: 300 })
    await engine.start(id, { command: 'sleep 100', background: true })
    const begun = performance.now()
    await untilOver(id)
    // It sleeps longer than this.
    expect(performance.now() - begun).toBeLessThan(50_000)
  })

  test('is none while someone waits for what a background process prints', async () => {
    const { id } = await engine.create({ idle: 300 })
    const program = await engine.start(id, { command: 'sleep 100', background: true })
    const reading = program.output[Symbol.asyncIterator]().next()
    await sleep(1000)
    expect((await engine.info(id)).state).toBe('running')
    await program.kill()
    await reading
    expect(await untilOver(id)).toMatchObject({ code: 'expired' })
  })

  test('is none while a background process works', async () => {
    const { id } = await engine.create({ idle: 1500 })
    await engine.start(id, { command: 'timeout 4 sh -c "while :; do :; done"; sleep 100', background: true })
    await sleep(3000)
    expect((await engine.info(id)).state).toBe('running')
    expect(await untilOver(id)).toMatchObject({ code: 'expired' })
  })

  test('needs a time that can be one', async () => {
    expect(await rejectionOf(engine.create({ idle: '5' }))).toMatchObject({ code: 'invalid', message: expect.stringContaining('idle: ') as string })
    expect(await rejectionOf(engine.create({ onExpiry: 'sleep' as 'pause' }))).toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('onExpiry: ') as string,
    })
  })
})

describe('a paused sandbox', () => {
  test('says so, refuses what is asked of it, and goes on when it is resumed', async () => {
    const { id } = await engine.create({})
    const ticking = await engine.start(id, { command: 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); echo $i; sleep 0.01; done', background: true })
    let printed = 0
    void (async () => {
      for await (const event of ticking.output) printed += event.type === 'stdout' ? event.bytes.length : 0
    })().catch(() => undefined)
    while (printed === 0) await sleep(5)
    expect((await engine.life.pause(id)).state).toBe('paused')
    expect((await engine.life.pause(id)).state).toBe('paused')
    const before = await settled(() => printed)
    await sleep(200)
    expect(printed).toBe(before)
    const refusal = { code: 'conflict', message: `sandbox ${id} is paused; resume it first` }
    expect(await rejectionOf(engine.start(id, { command: 'true' }))).toMatchObject(refusal)
    expect(await rejectionOf(engine.limit(id, { time: '1s' }))).toMatchObject(refusal)
    expect(await rejectionOf(ticking.kill())).toMatchObject(refusal)
    expect((await engine.usage(id)).runs).toBe(1)
    expect((await engine.receipt(id)).sandbox.id).toBe(id)
    expect((await engine.life.resume(id)).state).toBe('running')
    expect((await engine.life.resume(id)).state).toBe('running')
    while (printed === before) await sleep(5)
    await ticking.kill()
  })

  test('keeps its runs their wall time', async () => {
    const { id } = await engine.create({})
    const program = await engine.start(id, { command: 'read line; echo done', stdin: true, timeout: 2500 })
    const result = collect(program)
    await engine.life.pause(id)
    await sleep(2700)
    await engine.life.resume(id)
    await program.write(Buffer.from('\n'))
    const { outcome, stdout, usage } = await result
    expect([outcome, stdout]).toEqual([{ kind: 'exited', code: 0 }, 'done\n'])
    expect(usage.wallMs).toBeLessThan(2500)
  })

  test('does not spare a run its limit', async () => {
    const { id } = await engine.create({})
    const startedAt = performance.now()
    const program = await engine.start(id, { command: 'while :; do :; done', timeout: 2000 })
    await engine.life.pause(id)
    const usedMs = performance.now() - startedAt
    await sleep(600)
    const begun = performance.now()
    await engine.life.resume(id)
    expect((await program.ended).outcome).toEqual({ kind: 'timed-out', by: 'wall', limitMs: 2000 })
    expect(usedMs + performance.now() - begun).toBeGreaterThan(1950)
  })

  test('keeps what is left of its lifetime', async () => {
    const { id } = await engine.create({ lifetime: 2000 })
    await sleep(100)
    const leftMs = restOf(await engine.info(id))
    const pausing = performance.now()
    await engine.life.pause(id)
    let spentMs = performance.now() - pausing
    await sleep(2200)
    const resuming = performance.now()
    const info = await engine.life.resume(id)
    const rest = restOf(info)
    spentMs += performance.now() - resuming
    expect(info.state).toBe('running')
    expect(rest).toBeLessThanOrEqual(leftMs)
    expect(rest).toBeGreaterThan(leftMs - spentMs - 50)
    expect(await untilOver(id)).toMatchObject({ code: 'expired' })
  })

  test('is closed like any other, and leaves nothing', async () => {
    const { id } = await engine.create({})
    const program = await engine.start(id, { command: 'sleep 1000', background: true })
    await engine.life.pause(id)
    await engine.close(id)
    expect(driver.openCells).toBe(0)
    expect(await rejectionOf(program.ended)).toMatchObject({ code: 'closed' })
    expect(await rejectionOf(engine.life.resume(id))).toMatchObject({ code: 'closed' })
  })

  test('is not so for ever', async () => {
    const brief = createPlainEngine(driver, { bounds: { maxPausedMs: 300 } })
    const { id } = await brief.create({})
    expect(restOf(await brief.life.pause(id))).toBeLessThanOrEqual(300)
    expect(await untilOver(id, brief)).toMatchObject({ code: 'expired', message: expect.stringContaining('it was paused for 300ms') as string })
    await brief[Symbol.asyncDispose]()
  })

  test('that could not be paused goes on', async () => {
    driver.pause = () => Promise.reject(new SandboxError('busy', 'not now'))
    const { id } = await engine.create({})
    expect(await rejectionOf(engine.life.pause(id))).toMatchObject({ code: 'busy' })
    expect((await engine.info(id)).state).toBe('running')
    expect((await collect(await engine.start(id, { command: 'echo on' }))).stdout).toBe('on\n')
  })

  test('is refused where nothing can stand still', async () => {
    driver.probeResult = { ...plainProbe, features: { ...plainProbe.features, pause: { available: false, why: 'nothing stops here' } } }
    const { id } = await engine.create({})
    expect(await rejectionOf(engine.life.pause(id))).toMatchObject({ code: 'unsupported', message: expect.stringContaining('nothing stops here') as string })
  })

  test('keeps only files where nothing can stand still when its time is over', async () => {
    driver.probeResult = { ...plainProbe, features: { ...plainProbe.features, pause: { available: false, why: 'nothing stops here' } } }
    const { id } = await engine.create({ lifetime: 2000, onExpiry: 'pause' })
    const events = gather(id)
    while ((await engine.info(id)).state !== 'paused') await sleep(5)
    expect(driver.openCells).toBe(0)
    await engine.life.resume(id)
    expect((await collect(await engine.start(id, { command: 'echo on' }))).stdout).toBe('on\n')
    await engine.close(id)
    expect((await events).map(({ type }) => type)).toEqual(['expired', 'paused', 'resumed', 'exit', 'closed'])
  })
})

describe('onExpiry: pause', () => {
  test('pauses at the end of a lifetime; resumed, another begins', async () => {
    const { id } = await engine.create({ lifetime: 1000, onExpiry: 'pause' })
    while ((await engine.info(id)).state !== 'paused') await sleep(5)
    const { state, expiresAt } = await engine.life.resume(id)
    expect(state).toBe('running')
    expect(Date.parse(expiresAt) - Date.now()).toBeGreaterThan(500)
    while ((await engine.info(id)).state !== 'paused') await sleep(5)
  })

  test('pauses what is idle', async () => {
    const { id } = await engine.create({ idle: 150, onExpiry: 'pause' })
    const events = gather(id)
    while ((await engine.info(id)).state !== 'paused') await sleep(5)
    await engine.life.resume(id)
    while ((await engine.info(id)).state !== 'paused') await sleep(5)
    await engine.close(id)
    expect((await events).map(({ type }) => type)).toEqual(['expired', 'paused', 'resumed', 'expired', 'paused', 'closed'])
  })

  test('closes what cannot be paused when its time is over', async () => {
    driver.pause = () => Promise.reject(new SandboxError('busy', 'not now'))
    const { id } = await engine.create({ lifetime: 150, onExpiry: 'pause' })
    expect(await untilOver(id)).toMatchObject({ code: 'expired', message: expect.stringContaining('could not be paused: not now') as string })
  })

  test('begins no other lifetime beyond what a policy allows', async () => {
    const capped = createPlainEngine(driver, { policy: parsePolicy({ ceiling: { lifetime: 300 } }, 'operator') })
    const { id } = await capped.create({ lifetime: 300, onExpiry: 'pause' })
    while ((await capped.info(id)).state !== 'paused') await sleep(5)
    expect(await rejectionOf(capped.life.resume(id))).toMatchObject({ code: 'invalid', message: expect.stringContaining("policy 'operator'") as string })
    await capped[Symbol.asyncDispose]()
  })
})

describe('events', () => {
  test('tell what happened, in order, to everyone who listens, with reasons', async () => {
    const { id } = await engine.create({})
    const both = [gather(id), gather(id)]
    await collect(await engine.start(id, { command: 'exit 3' }))
    await engine.life.pause(id)
    await engine.life.resume(id)
    expect((await collect(await engine.start(id, { command: 'sleep 5', timeout: 100 }))).outcome.kind).toBe('timed-out')
    await engine.close(id)
    for (const events of await Promise.all(both)) {
      expect(events.map(({ type }) => type)).toEqual(['exit', 'paused', 'resumed', 'limited', 'exit', 'closed'])
      expect(events[0]).toMatchObject({ ending: { outcome: { kind: 'exited', code: 3 } } })
      expect(events[1]).toMatchObject({ reason: 'its owner paused it' })
      expect(events[3]).toMatchObject({ reason: expect.stringMatching(/^program \d+ was killed after 100ms of wall time$/) as string })
      expect(events[5]).toMatchObject({ reason: `sandbox ${id} was closed` })
    }
  })

  test('that wait for a slow reader are bounded, and it is told', async () => {
    const { id } = await engine.create({})
    const events = engine.life.events(id)[Symbol.asyncIterator]()
    const first = events.next()
    await sleep(5)
    for (let round = 0; round < 150; round += 1) {
      await engine.life.pause(id)
      await engine.life.resume(id)
    }
    expect((await first).value).toMatchObject({ type: 'paused' })
    expect((await events.next()).value).toMatchObject({ type: 'missed', reason: '43 events were missed: at most 256 wait for a reader' })
    for (let rest = 0; rest < 256; rest += 1) expect((await events.next()).value).toMatchObject({ type: rest % 2 === 0 ? 'paused' : 'resumed' })
    await engine.close(id)
    expect((await events.next()).value).toMatchObject({ type: 'closed' })
    expect((await events.next()).done).toBe(true)
  })

  test('end for whoever aborts, and for whoever leaves', async () => {
    const { id } = await engine.create({})
    const controller = new AbortController()
    const waiting = (async () => {
      for await (const event of engine.life.events(id, { signal: controller.signal })) throw new Error(event.type)
    })()
    setTimeout(() => controller.abort(new Error('enough')), 20)
    expect(await rejectionOf(waiting)).toMatchObject({ message: 'enough' })
    setTimeout(() => void engine.life.pause(id), 20)
    for await (const event of engine.life.events(id)) {
      expect(event.type).toBe('paused')
      break
    }
  })

  test('of a sandbox that there is not are not-found', async () => {
    expect(
      await rejectionOf(
        (async () => {
          for await (const _ of engine.life.events('a'.repeat(20))) break
        })(),
      ),
    ).toMatchObject({ code: 'not-found' })
  })
})
