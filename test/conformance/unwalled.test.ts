import { expect, test } from 'vitest'
import { allCases, runCases } from '../../src/conformance/index.js'
import { createHostView } from '../../src/verify/host-view.js'
import { createUnwalledSubject } from './subjects/unwalled-subject.js'

/** What the host itself refuses to an ordinary user, walls or not; only as root can these show that they see a missing wall. */
const heldByTheHost = [
  'isolation/writes-outside',
  'isolation/system-files',
  'isolation/kernel-settings',
  'isolation/cgroup-files',
  'isolation/network-settings',
]

test('without walls at least nine of ten denials go red', { timeout: 600_000 }, async () => {
  await using host = await createHostView({ ownFolders: [], sharedFolders: [] })
  const denials = allCases.filter(({ id, denial }) => denial && (process.getuid?.() === 0 || !heldByTheHost.includes(id)))
  const results = await runCases(createUnwalledSubject(host), { cases: denials })
  const green = results.filter(({ verdict }) => verdict !== 'failed').map(({ id, verdict, observed }) => `${id} ${verdict}: ${observed}`)
  expect(results.length).toBeGreaterThan(25)
  expect(green.length / results.length, green.join('\n')).toBeLessThanOrEqual(0.1)
})

test('a denial goes red because of what got through, never because its own script broke', { timeout: 600_000 }, async () => {
  await using host = await createHostView({ ownFolders: [], sharedFolders: [] })
  const results = await runCases(createUnwalledSubject(host), { cases: allCases.filter(({ denial }) => denial) })
  const broken = results.filter(
    ({ verdict, reason }) =>
      verdict === 'failed' && !/every try must be denied|nothing may show the canary|what the (second|cell) sees|the connections|must reject/.test(reason),
  )
  expect(broken.filter(({ id }) => !id.startsWith('isolation/root-'))).toEqual([])
})
