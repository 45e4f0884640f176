import { expect, test } from 'vitest'
import { startScript } from '../sys/run-script.js'

const count = process.env.GLOVEBOX_DEEP === '1' ? 200_000 : 5000

test(`a folder of ${count} names is walked, searched, packed and removed in bounded memory`, { timeout: 300_000 }, async () => {
  const { ended } = await startScript(new URL('programs/many-names.ts', import.meta.url), [String(count)])
  const { stdout, stderr, code } = await ended
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
  const { grownMiB, workersMiB, packed, ...seen } = JSON.parse(stdout) as Record<string, unknown>
  expect(seen).toEqual({ made: { kind: 'exited', code: 0 }, few: 10, walked: count, matches: 0, isRemoved: true, left: 0 })
  expect(packed).toBeGreaterThanOrEqual(1)
  expect(grownMiB).toBeLessThan(96)
  expect(workersMiB).toBeLessThan(16)
})
