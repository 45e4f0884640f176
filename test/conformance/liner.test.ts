import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCases, type Subject } from '../../src/conformance/index.js'
import { diskAttackCases } from '../../src/conformance/cases/attacks-disk.js'
import { memoryAttackCases } from '../../src/conformance/cases/attacks-memory.js'
import { processAttackCases } from '../../src/conformance/cases/attacks-processes.js'
import { endingCases } from '../../src/conformance/cases/endings.js'
import { networkOffCases } from '../../src/conformance/cases/network-off.js'
import { programCases } from '../../src/conformance/cases/programs.js'
import { usualPatienceMs } from '../../src/conformance/run-cases.js'
import { createLinedSubject } from './subjects/lined-subject.js'
import { createWorld, type World } from './world.js'

/** Those about walls are in `allCases` for liners too. */
const cases = [...programCases, ...endingCases, ...diskAttackCases, ...processAttackCases, ...memoryAttackCases, ...networkOffCases]

/** Cases in which one run is to meet what another left, or which ask for what no liner has. */
const elsewhere: Readonly<Record<string, string>> = {
  'programs/cwd': 'a second run reads what the first wrote',
  'programs/not-executable': 'a second run starts what the first wrote',
  'attacks/cpu-time-daemons': 'nothing outlives the program of a liner',
  'isolation/network-inbound': 'a second run connects to what the first listens on',
}

describe('each run in a liner of its own', () => {
  let world: World
  let subject: Subject
  beforeAll(async () => {
    world = await createWorld()
    const { probe, host } = await world.driverSubject('bwrap')
    if (!probe.features.liners.available) throw new Error(`no liners here: ${probe.features.liners.why}`)
    subject = createLinedSubject(probe, host)
  })
  afterAll(() => world[Symbol.asyncDispose]())

  for (const candidate of cases.filter(({ id }) => elsewhere[id] === undefined)) {
    test(`${candidate.id}: ${candidate.name}`, { timeout: (candidate.patienceMs ?? usualPatienceMs) + 30_000 }, async ({ skip }) => {
      const [result] = await runCases(subject, { cases: [candidate] })
      if (result?.verdict === 'skipped') skip(result.reason)
      expect(result, result?.observed).toMatchObject({ id: candidate.id, verdict: 'passed' })
    })
  }
})
