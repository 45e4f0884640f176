import { describe, expect, test } from 'vitest'
import { allCases, type CaseResult, runCases, type Subject } from '../../../src/conformance/index.js'
import { createWorld } from '../world.js'
import type { Mutant } from './table.js'

/**
 * An attack on a limit that a lie took away would reach this machine; thousands of operations take too long to do them for every lie; and the walls are the same around
 * liners, so that a lie about them is one about these too. A lie that is about nothing else is looked at by them all the same.
 */
const leftOut = ['attacks/', 'files/swapped-links', 'files/deep-tree', 'files/watch-overflow', 'liners/']

/** Each mutant fails the cases that are named for it, and no other. */
export function catchMutants(mutants: readonly Mutant[]): void {
  describe('a subject that', () => {
    for (const mutant of mutants) {
      test(`${mutant.name} fails ${mutant.caughtBy.length === 1 ? mutant.caughtBy[0] : `${mutant.caughtBy.length} cases`} and no other`, {
        timeout: 900_000,
      }, async () => {
        await using world = await createWorld()
        const subject =
          mutant.depth === 'driver' ? await world.driverSubject(mutant.driver, mutant.twist) : await world.engineSubject(mutant.driver, mutant.twist)
        const failed = (await runBoth(subject, mutant)).filter(({ verdict }) => verdict === 'failed')
        expect(failed.map(({ id }) => id).sort(), describeResults(failed, mutant)).toEqual([...mutant.caughtBy].sort())
      })
    }
  })
}

async function runBoth(subject: Subject, mutant: Mutant): Promise<CaseResult[]> {
  const isNamed = (id: string) => mutant.caughtBy.includes(id)
  const named = await runCases(subject, { filter: ({ id }) => isNamed(id), ...(mutant.patienceMs && { caseTimeoutMs: mutant.patienceMs }) })
  const isAmong = (id: string) =>
    !isNamed(id) && !leftOut.some((prefix) => id.startsWith(prefix) && prefix !== mutant.among) && id.startsWith(mutant.among ?? '')
  const others = await runCases(subject, { cases: allCases.filter(({ id }) => isAmong(id)) })
  return [...named, ...others]
}

function describeResults(failed: readonly CaseResult[], mutant: Mutant): string {
  return failed
    .filter(({ id }) => !mutant.caughtBy.includes(id))
    .map(({ id, reason, observed }) => `${id}: ${reason}; ${observed}`)
    .join('\n')
}
