import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allCases, runCases, type Subject } from '../../src/conformance/index.js'
import { usualPatienceMs } from '../../src/conformance/run-cases.js'
import { createWorld, type DriverName, type World } from './world.js'

/** Every case as a test of its own, skipped for the reason the subject's probe gives. */
export function hold(driver: DriverName, depth: 'driver' | 'engine'): void {
  describe(`${driver} at ${depth} depth`, () => {
    let world: World
    let subject: Subject
    beforeAll(async () => {
      world = await createWorld()
      subject = depth === 'driver' ? await world.driverSubject(driver) : await world.engineSubject(driver)
      if (!subject.probe.available) throw new Error(`${driver} is not available here: ${JSON.stringify(subject.probe.obstacles)}`)
    })
    afterAll(() => world[Symbol.asyncDispose]())

    for (const candidate of allCases) {
      test(`${candidate.id}: ${candidate.name}`, { timeout: (candidate.patienceMs ?? usualPatienceMs) + 30_000 }, async ({ skip }) => {
        const [result] = await runCases(subject, { cases: [candidate] })
        if (result?.verdict === 'skipped') skip(result.reason)
        expect(result, result?.observed).toMatchObject({ id: candidate.id, verdict: 'passed' })
      })
    }
  })
}
