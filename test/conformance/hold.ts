import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allCases, type CaseResult, runCases, type Subject } from '../../src/conformance/index.js'
import { usualPatienceMs } from '../../src/conformance/run-cases.js'
import { type DockerEngine, noEngineFor, startEngineFor } from '../docker-engine.js'
import { skipGroup } from '../unless.js'
import { keepRecord } from './record.js'
import { createWorld, type DriverName, type Twist, type World } from './world.js'

export interface HoldOptions extends Pick<Twist, 'platform'> {
  /** Which cases are left to `npm run test:deep`, by their ids: those that take long where every sandbox and every program does. */
  readonly isDeep?: (id: string) => boolean
}

/** What depends on what a driver does with limits, endings and pauses; the rest is the engine's with every driver, or was asked of the driver by itself. */
const often = ['attacks/', 'lifetime/', 'limits/', 'pause/', 'pools/', 'receipts/']

/** At the depth of the engine, where another driver of the same kind is asked everything, or every sandbox takes long. */
export function isEnginesOwn(id: string): boolean {
  return !often.some((group) => id.startsWith(group))
}

/** Every case as a test of its own, skipped for the reason the subject's probe gives. The docker driver gets an engine of its own where there can be one. */
export function hold(driver: DriverName, depth: 'driver' | 'engine' | 'client', { isDeep = () => false, ...twist }: HoldOptions = {}): void {
  const impossible = noEngineFor(driver)
  describe(`${driver} at ${depth} depth`, () => {
    skipGroup(impossible ?? false)
    let world: World | undefined
    let subject: Subject
    let absent: string | undefined
    let engine: DockerEngine | undefined
    const results: CaseResult[] = []
    beforeAll(async () => {
      if (impossible !== undefined) return
      engine = await startEngineFor(driver)
      world = await createWorld(engine ? { docker: engine.address } : {})
      subject = await world[`${depth}Subject`](driver, twist)
      absent = absenceOf(subject)
      if (!subject.probe.available && absent === undefined) throw new Error(`${driver} is not available here: ${JSON.stringify(subject.probe.obstacles)}`)
    })
    afterAll(async () => {
      const why = impossible ?? absent
      keepRecord({ driver, depth, results, ...(why === undefined ? { probe: subject.probe } : { absent: why }) })
      await world?.[Symbol.asyncDispose]()
      await engine?.[Symbol.asyncDispose]()
    })

    for (const candidate of allCases) {
      test(`${candidate.id}: ${candidate.name}`, { timeout: (candidate.patienceMs ?? usualPatienceMs) + 30_000 }, async ({ skip }) => {
        if (absent !== undefined) skip(absent)
        if (process.env.GLOVEBOX_DEEP !== '1' && isDeep(candidate.id)) skip('takes long with this driver: npm run test:deep')
        const [result] = await runCases(subject, { cases: [candidate] })
        if (result) results.push(result)
        if (result?.verdict === 'skipped') skip(result.reason)
        expect(result, result?.observed).toMatchObject({ id: candidate.id, verdict: 'passed' })
      })
    }
  })
}

/** A runtime that is not installed, or not for this account, is no failure; one that is there and opens no cell is. */
export function absenceOf({ probe }: Subject): string | undefined {
  const { obstacles } = probe
  const isAbsent = obstacles.length > 0 && obstacles.every(({ what }) => what === 'not root' || what === `no ${probe.driver.split(':')[1]}`)
  return isAbsent ? obstacles.map(({ what, why }) => `${what}: ${why}`).join('; ') : undefined
}
