import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { keepChanges } from '../../src/cli/here.js'
import type { CallOptions, Platform, SandboxInfo } from '../../src/contract/platform.js'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

/** A cell that answers nothing, until it is given up. */
const silent = {
  changes: {
    written: (_id: string, _target: string, { signal }: CallOptions) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason as Error))
      }),
  },
} as unknown as Platform

test.each([
  ['as long as the command may take', 300_000, '5m'],
  ['a minute at least', 1000, '1m'],
])('reading what a command left takes %s, and then nothing is kept', async (_what, timeMs, told) => {
  const info = { id: 'x', spec: { limits: { timeMs, diskBytes: 1000 } } } as unknown as SandboxInfo
  let reason: unknown
  const keeping = keepChanges({ spec: {}, folder: '/', startedMs: 0 }, { platform: silent, info, command: ['true'] }).catch(
    (error: unknown) => (reason = error),
  )
  await vi.advanceTimersByTimeAsync(Math.max(timeMs, 60_000) - 1)
  expect(reason).toBeUndefined()
  await vi.advanceTimersByTimeAsync(1)
  await keeping
  expect(reason).toMatchObject({ code: 'expired', message: `--here: what was written could not be read within ${told}, and nothing of it was kept` })
})
