import { expect, test } from 'vitest'
import { allCases, runCases } from '../../src/conformance/index.js'
import { createHostView } from './host-view.js'
import { createUnwalledSubject } from './subjects/unwalled-subject.js'

test('without walls at least nine of ten denials go red', { timeout: 120_000 }, async () => {
  await using host = await createHostView({ ownFolders: [], sharedFolders: [] })
  const results = await runCases(createUnwalledSubject(host), { cases: allCases.filter(({ denial }) => denial) })
  const green = results.filter(({ verdict }) => verdict === 'passed')
  for (const r of results) console.log(r.id, r.verdict, r.reason, r.observed.slice(0, 400), Math.round(r.ms))
  expect(results.map(({ verdict }) => verdict)).not.toContain('skipped')
  expect(green.length / results.length).toBeLessThanOrEqual(0.1)
})
