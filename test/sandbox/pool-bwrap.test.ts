// Pools with walls: what is proven of a sandbox that was made ahead, what is left, and what an idle pool does to its process.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Platform } from '../../src/contract/platform.js'
import { verifyReceipt } from '../../src/receipt/index.js'
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

test('runs in liners leave nothing for the next, and each receipt is of its own run alone', { timeout }, async ({ skip }) => {
  const [probe] = await platform.probe()
  const { liners } = probe?.features ?? {}
  if (unavailable ?? !liners?.available) skip(unavailable ?? 'runs cannot have liners here')
  await using pool = await SandboxPool.create({ platform, fresh: 'liner', size: 1, max: 1, env: { OF_SPEC: 'yes' } })
  const plant = 'for place in . /tmp /dev/shm "$HOME"; do echo x > "$place/mark"; done; sleep 40 >/dev/null 2>&1 & ls'
  const first = await pool.run(plant, { env: { FIRST_ONLY: '1' }, receipt: true })
  expect([first.stdout, first.receipt?.fresh, first.receipt?.pooled]).toEqual(['mark\n', 'liner', true])
  const next = await pool.run('ls -A . /tmp /dev/shm "$HOME" | grep mark; echo "$OF_SPEC"; ls /proc | grep -c "^[0-9]"', { receipt: true })
  expect(next.stdout.split('\n').slice(0, 1)).toEqual(['yes'])
  expect(Number(next.stdout.split('\n')[1])).toBeLessThan(8)
  expect(next.receipt?.runs.length).toBe(1)
  expect(JSON.stringify(next.receipt)).not.toContain('FIRST_ONLY')
  expect(JSON.stringify(first.receipt)).toContain('FIRST_ONLY')
  expect(next.receipt?.sandbox.id).not.toBe(first.receipt?.sandbox.id)
  expect(await pool.status()).toMatchObject({ total: 1, inUse: 0 })
})

test('the receipt of a run that is over in its liner tells when its cell was read; of one that runs, all is looked at now', { timeout }, async ({ skip }) => {
  const [probe] = await platform.probe()
  const { liners } = probe?.features ?? {}
  if (unavailable ?? !liners?.available) skip(unavailable ?? 'runs cannot have liners here')
  await using pool = await SandboxPool.create({ platform, fresh: 'liner', size: 1, max: 1 })
  const before = Date.now()
  const { receipt: over } = await pool.run('true', { receipt: true })
  expect(verifyReceipt(over)).toMatchObject({ valid: true })
  expect(Date.parse(over?.cellReadAt ?? '')).toBeLessThanOrEqual(before)
  expect(over?.inspected).toEqual({ processes: 0, threads: 0, complete: true })
  expect(over?.controls.filter(({ subject, verdict }) => subject === 'cell' && verdict === 'proven').length).toBeGreaterThan(10)
  const shot = await platform.pools.run({ pool: pool.id }, { command: 'echo begun; sleep 60' })
  for await (const _ of shot.program.output) break
  const running = await shot.receipt()
  expect([running.cellReadAt, running.inspected.complete, running.inspected.processes > 0]).toEqual([undefined, true, true])
  await shot.release()
})

test('Python in a liner is like any other, with its modules imported ahead', { timeout }, async ({ skip }) => {
  const [probe] = await platform.probe()
  const { liners } = probe?.features ?? {}
  if (unavailable ?? !liners?.available) skip(unavailable ?? 'runs cannot have liners here')
  await using pool = await SandboxPool.create({ platform, fresh: 'liner', size: 1, imports: ['decimal'] })
  const python = (code: string): string[] => ['/usr/bin/python3', '-c', code]
  expect((await pool.run(python('import sys; print("decimal" in sys.modules); sys.modules["planted"] = sys'))).stdout).toBe('True\n')
  expect((await pool.run(python('import sys; print("planted" in sys.modules); sys.exit(7)'))).exitCode).toBe(7)
  const wrong = await SandboxPool.create({ platform, fresh: 'liner', size: 1, imports: ['no_such_module_here'] }).catch((error: unknown) => error)
  expect(wrong).toMatchObject({ code: 'invalid' })
})

test('a one-shot is in a liner unless it is to be in a cell, or has to; its receipt says which', { timeout }, async ({ skip }) => {
  const [probe] = await platform.probe()
  const { liners } = probe?.features ?? {}
  if (unavailable ?? !liners?.available) skip(unavailable ?? 'runs cannot have liners here')
  const freshOf = async (options: Parameters<typeof Sandbox.run>[1]): Promise<string | undefined> =>
    (await Sandbox.run('true', { platform, receipt: true, ...options })).receipt?.fresh
  expect(await freshOf({})).toBe('liner')
  expect(await freshOf({ fresh: 'liner' })).toBe('liner')
  const inCells = [
    { fresh: 'cell' as const },
    { pool: false },
    { sandbox: { name: 'one' } },
    ...(probe?.users.root.available ? [{ user: 'root' as const }, { sandbox: { user: 'root' as const } }] : []),
    ...(probe?.features['root-overlay'].available ? [{ sandbox: { root: 'overlay' as const } }] : []),
    ...(probe?.features.commands.available ? [{ sandbox: { commands: ['true', 'sh'] } }] : []),
  ]
  for (const options of inCells) expect([options, await freshOf(options)]).toEqual([options, 'cell'])
  await expect(Sandbox.run('true', { platform, cwd: '/nowhere' })).rejects.toMatchObject({ code: 'invalid' })
})

test('a liner is refused by name where it cannot be had, and none of them is a sandbox', { timeout }, async ({ skip }) => {
  const [probe] = await platform.probe()
  const { liners } = probe?.features ?? {}
  if (unavailable ?? !liners?.available) skip(unavailable ?? 'runs cannot have liners here')
  const refused = (sandbox: object): Promise<unknown> =>
    Promise.resolve(Sandbox.run('true', { platform, fresh: 'liner', sandbox })).then(
      () => 'it ran',
      (error: Error) => error.message,
    )
  expect(await refused({ commands: ['true'] })).toMatch(/^commands: a run in a liner cannot have it/)
  expect(await refused({ user: 'root' })).toMatch(/^user: a run in a liner cannot have it/)
  expect(await refused({ root: 'overlay' })).toMatch(/^root: a run in a liner cannot have it/)
  await using pool = await SandboxPool.create({ platform, fresh: 'liner', size: 0 })
  await expect(pool.acquire()).rejects.toMatchObject({ code: 'conflict' })
  expect((await pool.run('echo fine')).stdout).toBe('fine\n')
})

test('a run in a liner that is called off is gone, and its cell goes on', { timeout }, async ({ skip }) => {
  const [probe] = await platform.probe()
  const { liners } = probe?.features ?? {}
  if (unavailable ?? !liners?.available) skip(unavailable ?? 'runs cannot have liners here')
  await using pool = await SandboxPool.create({ platform, fresh: 'liner', size: 1, max: 1, recycleAfterRuns: 2 })
  for await (const _ of pool.run('while :; do echo y; done')) break
  expect((await pool.run('echo on')).stdout).toBe('on\n')
  expect((await pool.run('echo anew')).stdout).toBe('anew\n')
})

test.for(['cell', 'liner'] as const)('a run with a fresh %s that is called off gives its place to the next', { timeout }, async (fresh, { skip }) => {
  const [probe] = await platform.probe()
  const why = unavailable ?? (fresh === 'liner' && !probe?.features.liners.available)
  if (why) skip('runs cannot have one here')
  await using pool = await SandboxPool.create({ platform, fresh, size: 1, max: 1 })
  const calledOff = new AbortController()
  const seen: string[] = []
  const read = async (): Promise<void> => {
    for await (const event of pool.run('echo begun; sleep 60', { signal: calledOff.signal })) {
      seen.push(event.type)
      calledOff.abort()
    }
  }
  await expect(read()).rejects.toThrow()
  expect(seen).toEqual(['stdout'])
  const captured = new AbortController()
  const run = pool.run(['sleep', '60'], { signal: captured.signal })
  setTimeout(() => captured.abort(), 500)
  await expect(run).rejects.toThrow()
  expect((await pool.run(['echo', 'next'], { signal: AbortSignal.timeout(10_000) })).stdout).toBe('next\n')
})
