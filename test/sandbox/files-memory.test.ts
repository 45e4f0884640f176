import { expect, test } from 'vitest'
import { startScript } from '../sys/run-script.js'

test('moving a GiB into a sandbox and out of it takes less than 64 MiB of memory', { timeout: 300_000 }, async () => {
  const { ended } = await startScript(new URL('programs/move-files.ts', import.meta.url), ['1024'])
  const { stdout, stderr, code } = await ended
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
  const { grownMiB, movedMiB } = JSON.parse(stdout) as { grownMiB: number; movedMiB: number }
  expect(movedMiB).toBe(1024)
  expect(grownMiB).toBeLessThan(64)
})
