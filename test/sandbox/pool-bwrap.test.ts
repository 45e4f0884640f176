// Pools with walls: what is proven of a sandbox that was made ahead, what is left, and what an idle pool does to its process.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Platform } from '../../src/contract/platform.js'
import { Sandbox, SandboxPool } from '../../src/sandbox/index.js'
import { startScript } from '../sys/run-script.js'
import { tracesOf } from './cell-traces.js'

const timeout = 120_000
let platform: Platform
let unavailable: string | undefined

beforeAll(async () => {
  platform = createPlatform()
  const [probe] = await platform.probe()
  unavailable = probe?.available === true ? undefined : `no cell can be built here: ${probe?.obstacles[0]?.why ?? 'there is no driver'}`
}, timeout)
afterAll(() => platform[Symbol.asyncDispose]())

async function filled(pool: SandboxPool): Promise<void> {
  while ((await pool.status()).available < pool.size) await new Promise((resolve) => setTimeout(resolve, 10))
}

test('a sandbox that was made ahead is proven like any other', { timeout }, async ({ skip }) => {
  if (unavailable !== undefined) skip(unavailable)
  await using pool = await SandboxPool.create({ platform, size: 1 })
  await filled(pool)
  const made = await pool.run('id -u; echo x > /workspace/x; ls /workspace', { receipt: true })
  const { receipt: fresh } = await Sandbox.run('true', { platform, receipt: true, pool: false })
  expect(made.stdout).toBe('1000\nx\n')
  expect([made.receipt?.pooled, made.receipt?.runs.map(({ posture }) => posture), fresh?.pooled]).toEqual([true, ['full'], false])
  const proven = (receipt: typeof fresh): string[] => receipt?.controls.flatMap(({ control, verdict }) => (verdict === 'proven' ? [control] : [])).sort() ?? []
  expect(proven(fresh).length).toBeGreaterThan(10)
  expect(proven(made.receipt)).toEqual(proven(fresh))
})

test('limits hold in it, and nothing of it is left for the next', { timeout }, async ({ skip }) => {
  if (unavailable !== undefined) skip(unavailable)
  await using pool = await SandboxPool.create({ platform, size: 1, limits: { time: '2s' } })
  await filled(pool)
  expect((await pool.run('sleep 20')).outcome).toEqual({ kind: 'timed-out', by: 'wall', limitMs: 2000 })
  await filled(pool)
  expect((await pool.run('echo mine > /tmp/mark; cat /tmp/mark')).stdout).toBe('mine\n')
  await filled(pool)
  expect((await pool.run('ls -A /tmp /workspace "$HOME"')).stdout).not.toContain('mark')
})

test('an idle pool keeps no process alive, and a process that ends leaves no cell', { timeout }, async ({ skip }) => {
  if (unavailable !== undefined) skip(unavailable)
  const { ended } = await startScript(new URL('programs/leave-a-pool.ts', import.meta.url))
  const { stdout, stderr, code } = await ended
  const [waiting, left] = stdout.split('\n').map((line) => (line === '' ? undefined : (JSON.parse(line) as unknown)))
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
  expect((waiting as { readonly traces: number }).traces).toBeGreaterThan(0)
  expect(tracesOf(left as string[])).toEqual([])
})
