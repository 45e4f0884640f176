// Contexts in the life of a sandbox with walls: pauses, files kept without memory, snapshots, receipts, idleness and ends.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { SandboxError } from '../../src/contract/errors.js'
import type { Platform } from '../../src/contract/platform.js'
import { Sandbox } from '../../src/sandbox/index.js'

const timeout = 90_000
let platform: Platform
let unavailable: string | undefined
let cannotPause: string | undefined

beforeAll(async () => {
  platform = createPlatform()
  const [probe] = await platform.probe()
  unavailable = probe?.available === true ? undefined : `no cell can be built here: ${probe?.obstacles[0]?.why ?? 'there is no driver'}`
  cannotPause = probe?.features.pause.available === false ? probe.features.pause.why : undefined
}, timeout)
afterAll(() => platform[Symbol.asyncDispose]())

const rejectionOf = (promise: PromiseLike<unknown>): Promise<SandboxError> =>
  Promise.resolve(promise).then(
    () => Promise.reject(new Error('it resolved')),
    (error: SandboxError) => error,
  )

test('a pause stops an execution with its time, and it goes on where it was', { timeout }, async ({ skip }) => {
  if (unavailable ?? cannotPause) skip(unavailable ?? cannotPause)
  await using sandbox = await Sandbox.create({ platform })
  let up = (): void => undefined
  const isUp = new Promise<void>((resolve) => (up = resolve))
  const run = sandbox.code('import time\nprint("up", flush=True)\nfor n in range(20): time.sleep(0.05)\n"through"', { timeout: '20s', onStdout: up })
  void run.catch(() => undefined)
  await isUp
  await sandbox.pause()
  expect((await rejectionOf(sandbox.code('1'))).message).toContain('is paused')
  await sandbox.resume()
  expect((await run).text).toBe("'through'")
})

test('put away without its memory, contexts end, and the next execution says so', { timeout }, async ({ skip }) => {
  if (unavailable) skip(unavailable)
  await using sandbox = await Sandbox.create({ platform })
  const { context } = await sandbox.code('kept = 1; open("file", "w").write("there")')
  await sandbox.pause({ memory: false })
  await sandbox.resume()
  const [info] = await sandbox.contexts.list()
  expect([info?.id, info?.state, info?.ended]).toEqual([context, 'ended', { kind: 'killed', reason: 'its sandbox was paused without its memory' }])
  const next = await sandbox.code('("kept" in globals(), open("file").read())')
  expect([next.text, next.isStateKept, next.context]).toEqual(["(False, 'there')", false, context])
  expect((await sandbox.code('1')).isStateKept).toBe(true)
})

test('a snapshot is taken beside a context that works, and a fork has its files and no contexts', { timeout }, async ({ skip }) => {
  if (unavailable) skip(unavailable)
  await using sandbox = await Sandbox.create({ platform })
  await sandbox.code('kept = 1; open("file", "w").write("there")')
  const running = sandbox.code('import time\nfor n in range(10): time.sleep(0.05)\nkept')
  void running.catch(() => undefined)
  const [fork] = await sandbox.fork()
  expect((await running).text).toBe('1')
  expect(await fork?.contexts.list()).toEqual([])
  expect((await fork?.code('("kept" in globals(), open("file").read())'))?.text).toBe("(False, 'there')")
  await fork?.close()
})

test('a restart ends what runs and what waits, and the context begins anew', { timeout }, async ({ skip }) => {
  if (unavailable) skip(unavailable)
  await using sandbox = await Sandbox.create({ platform })
  const { context } = await sandbox.code('kept = 1')
  let up = (): void => undefined
  const isUp = new Promise<void>((resolve) => (up = resolve))
  const running = sandbox.code('import time\nprint("up", flush=True)\ntime.sleep(600)', { onStdout: up })
  const waiting = sandbox.code('2')
  void running.catch(() => undefined)
  void waiting.catch(() => undefined)
  await isUp
  const info = await sandbox.contexts.restart(context)
  expect([info.restarts, info.state]).toEqual([1, 'idle'])
  const reason = 'its context was restarted'
  for (const each of [await running, await waiting]) expect([each.status, each.outcome]).toEqual(['crashed', { kind: 'killed', reason }])
  expect((await sandbox.code('"kept" in globals()')).text).toBe('False')
})

test('an interpreter is a program of the sandbox: in its processes and in its receipt', { timeout }, async ({ skip }) => {
  if (unavailable) skip(unavailable)
  await using sandbox = await Sandbox.create({ platform })
  expect((await sandbox.receipt()).runs).toEqual([])
  await sandbox.code('1')
  const [context] = await sandbox.contexts.list()
  expect((await sandbox.processes()).map(({ pid }) => pid)).toContain(context?.pid)
  const { runs } = await sandbox.receipt()
  const running = runs.filter(({ outcome }) => outcome === undefined)
  expect(running).toEqual([expect.objectContaining({ user: 'user', posture: expect.stringMatching(/^(full|short)$/) as unknown })])
  await sandbox.contexts.remove(context?.id ?? '')
  const over = (await sandbox.receipt()).runs.find(({ number }) => number === running[0]?.number)
  expect(over).toMatchObject({ commandHash: running[0]?.commandHash, outcome: { kind: 'killed', reason: 'its context was removed' } })
})

test('what is executed is activity, and an interpreter that waits is none', { timeout }, async ({ skip }) => {
  if (unavailable) skip(unavailable)
  const sandbox = await Sandbox.create({ platform, idle: '1500ms' })
  const closed = new Promise<string>((resolve) => sandbox.on('expired', ({ reason }) => resolve(reason)))
  expect((await sandbox.code('import time\ntime.sleep(3)\n"awake"')).text).toBe("'awake'")
  expect(await closed).toContain('idle')
  await sandbox.close()
})

test('closing a sandbox ends what it executes, and says so', { timeout }, async ({ skip }) => {
  if (unavailable) skip(unavailable)
  const sandbox = await Sandbox.create({ platform })
  let up = (): void => undefined
  const isUp = new Promise<void>((resolve) => (up = resolve))
  const running = rejectionOf(sandbox.code('import time\nprint("up", flush=True)\ntime.sleep(600)', { onStdout: up }))
  await isUp
  const waiting = rejectionOf(sandbox.code('1'))
  await sandbox.close()
  expect([(await running).code, (await waiting).code]).toEqual(['closed', 'closed'])
  expect((await rejectionOf(sandbox.code('1'))).code).toBe('closed')
})

test('a language whose interpreter may not be started is refused with what there is to do', { timeout }, async ({ skip }) => {
  if (unavailable) skip(unavailable)
  const [probe] = await platform.probe()
  const { commands } = probe?.features ?? {}
  if (commands?.available === false) skip(commands.why)
  await using sandbox = await Sandbox.create({ platform, commands: ['true'] })
  const { python, bash } = await sandbox.contexts.languages()
  expect([python.available, bash.available]).toEqual([false, false])
  const error = await rejectionOf(sandbox.code('1'))
  expect([error.code, error.hint]).toEqual(['unsupported', "Sandbox.create({ template: 'python' })"])
  expect(error.message).toContain("template 'host' has no interpreter of python")
})

test('a context that is removed while it restarts leaves no interpreter', { timeout }, async ({ skip }) => {
  if (unavailable) skip(unavailable)
  await using sandbox = await Sandbox.create({ platform })
  const context = await sandbox.contexts.create()
  const ends = await Promise.allSettled([sandbox.contexts.restart(context), sandbox.contexts.remove(context)])
  expect(ends.map((end) => (end.status === 'rejected' ? (end.reason as SandboxError).code : end.value))).toEqual(['not-found', true])
  expect((await sandbox.processes()).filter(({ state }) => state !== 'ended')).toEqual([])
})

test('an interrupt starts no interpreter where the last one has ended', { timeout }, async ({ skip }) => {
  if (unavailable) skip(unavailable)
  await using sandbox = await Sandbox.create({ platform })
  const run = sandbox.code('import os\nfor n in range(300): open(f"f{n}", "wb").write(b"x" * 100_000)\nos._exit(3)')
  const crashed = run.then(({ status }) => status)
  while ((await sandbox.contexts.list())[0]?.ended === undefined) await new Promise((resolve) => setTimeout(resolve, 1))
  await run.interrupt()
  expect(await crashed).toBe('crashed')
  expect((await sandbox.contexts.list())[0]).toMatchObject({ state: 'ended', restarts: 0 })
})

test('files that grow while they are read hold an execution up only so long', { timeout }, async ({ skip }) => {
  if (unavailable) skip(unavailable)
  await using sandbox = await Sandbox.create({ platform })
  const grow = 'import os, time\ntime.sleep(0.1)\nfor n in range(999, -1, -1): os.truncate(f"g{n}", 100_000_000)'
  const startedAt = performance.now()
  const { artifacts, artifactsMissing } = await sandbox.code(
    `import subprocess, sys\nfor n in range(1000): open(f"g{n}", "w").close()\nsubprocess.Popen([sys.executable, "-c", ${JSON.stringify(grow)}])`,
  )
  expect(artifactsMissing).toBe('the files could not be read within 10 s')
  expect(artifacts.length).toBeLessThan(1000)
  expect(performance.now() - startedAt).toBeLessThan(30_000)
})
