import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Platform } from '../../src/contract/platform.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { rejectionOf } from './collect.js'

let platform: Platform
beforeEach(() => {
  platform = createPlatform()
})
afterEach(() => platform[Symbol.asyncDispose]())

const probing = createPlatform()
const drivers = (await probing.probe()).filter(({ available }) => available).map(({ driver }) => driver)
await probing[Symbol.asyncDispose]()

describe.each(drivers)('%s: the runs of a receipt', { timeout: 60_000 }, (driver) => {
  test('are all that run and the latest hundred that are over, however many never came about', async () => {
    const sandbox = await Sandbox.create({ driver, minTier: 'none', platform })
    const server = await sandbox.spawn('sleep 1000')
    for (let index = 0; index < 104; index += 1) await sandbox.run('true')
    for (let index = 0; index < 5; index += 1) expect(await rejectionOf(sandbox.run('true', { cwd: '/no/such/folder' }))).toMatchObject({ code: 'invalid' })
    await sandbox.run('true')
    const { runs, usage } = await sandbox.receipt()
    expect(runs.map(({ number }) => number)).toEqual([1, ...Array.from({ length: 99 }, (_, index) => index + 7), 111])
    expect(runs.filter(({ outcome }) => outcome === undefined).map(({ number }) => number)).toEqual([1])
    expect(usage.runs).toBe(106)
    await server.kill()
    await server.wait()
    const after = await sandbox.receipt()
    expect(after.runs.map(({ number }) => number)).toEqual([...Array.from({ length: 99 }, (_, index) => index + 7), 111])
    expect(after.usage.runs).toBe(106)
  })

  test('have those that were called off after they began', async () => {
    const sandbox = await Sandbox.create({ driver, minTier: 'none', platform })
    for (let index = 0; index < 4; index += 1) await sandbox.run('true')
    let began = 0
    for (const delayMs of [0, 1, 2, 3, 5, 10, 30, 300, 3000]) {
      // With some a program takes its time to begin.
      if (delayMs > 30 && began > 0) break
      await rejectionOf(sandbox.run(`echo > began-${delayMs}; sleep 1000`, { signal: AbortSignal.timeout(delayMs) }))
      began += Number(await sandbox.files.exists(`began-${delayMs}`))
      const listed = (await sandbox.receipt()).runs.filter(({ outcome }) => outcome?.kind === 'killed')
      expect(listed.length).toBeGreaterThanOrEqual(began)
    }
    expect(began).toBeGreaterThan(0)
  })
})
