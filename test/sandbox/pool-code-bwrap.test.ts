// Cells with walls in which an interpreter waits for its first code: what it finds there is what a new one finds.
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Language } from '../../src/contract/code.js'
import type { Platform } from '../../src/contract/platform.js'
import type { Receipt } from '../../src/contract/receipt.js'
import { sizesFor } from '../../src/engine/pool-cells.js'
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

const templates: Readonly<Record<'python' | 'javascript' | 'bash', string>> = { python: 'python', javascript: 'node', bash: 'shell' }
const kinds = Object.keys(templates) as (keyof typeof templates)[]

async function filled(pool: SandboxPool): Promise<void> {
  while ((await pool.status()).available < pool.size) await sleep(10)
}

/** The interpreters, seen from the host, that were started with this variable. */
function marked(mark: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => {
    try {
      return pid !== process.pid && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark)
    } catch {
      return false
    }
  })
}

const newMark = (): string => `MARK=${crypto.randomUUID()}`
const envOf = (mark: string): Record<string, string> => ({ MARK: mark.slice('MARK='.length) })

test.for(kinds)('the interpreter of %s waits in each cell, begun and unused', { timeout }, async (language, { skip }) => {
  if (unavailable !== undefined) skip(unavailable)
  await using pool = await SandboxPool.create({ platform, template: templates[language], language, size: 1 })
  await filled(pool)
  const askedAt = Date.now()
  await using sandbox = await pool.acquire({ name: `of ${language}`, metadata: { for: 'me' } })
  const info = await sandbox.info()
  expect(info.spec).toMatchObject({ name: `of ${language}`, metadata: { for: 'me' } })
  expect(Date.parse(info.createdAt)).toBeGreaterThanOrEqual(askedAt)
  expect(Date.parse(info.expiresAt) - Date.parse(info.createdAt)).toBe(info.spec.lifetimeMs)
  const [context, ...others] = await sandbox.contexts.list()
  expect([context, others]).toMatchObject([{ isDefault: true, state: 'idle', executions: 0, restarts: 0 }, []])
  expect(Date.parse(context?.createdAt ?? '')).toBeLessThanOrEqual(askedAt)
  const { text, stdout, number, isStateKept, context: usedId } = await sandbox.code(language === 'bash' ? 'echo 42' : '6 * 7', { language })
  expect([text ?? stdout.trim(), number, isStateKept, usedId]).toEqual(['42', 1, true, context?.id])
})

/** One-shots nobody opened a pool for; what is told of one that found its interpreter begun. */
async function receiptOfShot(language: Language, template: string): Promise<Receipt> {
  const ask = language === 'python' ? 'input()' : 'prompt("")'
  const shots = async (): Promise<Receipt> => {
    let receipt: Receipt | undefined
    const onInput = async (): Promise<string> => {
      for await (const { id } of platform.list({ agent: 'shot' })) receipt = await platform.receipt(id)
      return 'go on'
    }
    await Sandbox.code(ask, { platform, language, sandbox: { template, agent: 'shot' }, onInput })
    if (!receipt) throw new Error('it asked nothing')
    return receipt
  }
  const isAhead = ({ createdAt, runs: [first] }: Receipt): boolean => Date.parse(first?.startedAt ?? '') < Date.parse(createdAt)
  const first = await shots()
  expect([first.pooled, first.fresh, isAhead(first)]).toEqual([false, 'cell', false])
  let next = await shots()
  while (!isAhead(next)) {
    await sleep(50)
    next = await shots()
  }
  return next
}

test('one-shots find it begun once they are asked for again, and their receipts say so', { timeout }, async ({ skip }) => {
  if (unavailable !== undefined) skip(unavailable)
  const receipt = await receiptOfShot('python', 'python')
  expect([receipt.pooled, receipt.fresh, receipt.runs.length, receipt.runs[0]?.posture]).toEqual([true, 'cell', 1, 'full'])
  expect(receipt.sandbox.agent).toBe('shot')
  expect(verifyReceipt(receipt)).toMatchObject({ valid: true })
})

const surroundings: Readonly<Record<'python' | 'javascript', string>> = {
  python: `
import os, sys, json
json.dumps([dict(os.environ), os.getcwd(), sorted(os.listdir('.')), sorted(os.listdir('/tmp')), sorted(os.listdir(os.environ['HOME'])), sorted(globals()),
  sorted(sys.modules), sys.path, os.getuid(), os.getpgid(0) == os.getpid(), sorted(os.listdir('/proc/self/fd')).__len__(), [p for p in os.listdir('/proc') if p.isdigit()].__len__()])`,
  javascript: `
const fs = require('fs')
JSON.stringify([process.env, process.cwd(), fs.readdirSync('.'), fs.readdirSync('/tmp'), fs.readdirSync(process.env.HOME), Object.getOwnPropertyNames(globalThis).sort(),
  process.getuid(), process.argv, fs.readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name)).length])`,
}

/** How many processes there are is told last. */
function splitLast(text: string): { readonly rest: string; readonly last: number } {
  const at = text.lastIndexOf(',')
  return { rest: text.slice(0, at), last: Number.parseInt(text.slice(at + 1), 10) }
}

test.for(['python', 'javascript'] as const)('code in %s finds there what it finds in a new one', { timeout }, async (language, { skip }) => {
  if (unavailable !== undefined) skip(unavailable)
  const spec = { template: templates[language], env: { OF_SPEC: 'yes' }, cwd: '/tmp' }
  await using pool = await SandboxPool.create({ platform, ...spec, language, size: 2 })
  await filled(pool)
  const source = surroundings[language]
  const ahead = await pool.code(source, { language, env: { OF_CALL: 'too' } })
  const anew = await Sandbox.code(source, { platform, language, sandbox: spec, pool: false, env: { OF_CALL: 'too' } })
  expect([ahead.status, ahead.error]).toEqual(['ok', undefined])
  expect(ahead.text).toContain('OF_SPEC')
  expect(ahead.text).toContain('OF_CALL')
  const [found, expected] = [ahead.text, anew.text].map((text) => splitLast(text ?? ''))
  expect(found?.rest).toBe(expected?.rest)
  // In a new one the first program waits too, which nobody asked for here.
  expect(found?.last).toBeLessThanOrEqual(expected?.last ?? 0)
})

test.for(['python', 'javascript'] as const)('no two interpreters of %s begin with the same seed', { timeout }, async (language, { skip }) => {
  if (unavailable !== undefined) skip(unavailable)
  await using pool = await SandboxPool.create({ platform, template: templates[language], language, size: 3, max: 3 })
  await filled(pool)
  const source =
    language === 'python' ? 'import random\n[random.random(), hash("x"), __import__("uuid").uuid4().hex]' : '[Math.random(), require("crypto").randomUUID()]'
  const said = await Promise.all([1, 2, 3].map(() => pool.code(source, { language, artifacts: false })))
  const drawn = said.flatMap(({ text }) => text?.replace(/[[\]\s]/g, '').split(',') ?? [])
  expect(drawn.length).toBe(language === 'python' ? 9 : 6)
  expect(new Set(drawn).size).toBe(drawn.length)
})

test('variables and folder of a spec are never another’s', { timeout }, async ({ skip }) => {
  if (unavailable !== undefined) skip(unavailable)
  const said = async (env: Record<string, string>, cwd: string): Promise<string | undefined> =>
    (await Sandbox.code('import os\nos.environ["WHOSE"] + os.getcwd()', { platform, sandbox: { env, cwd } })).text
  for (let n = 0; n < 3; n += 1) expect(await said({ WHOSE: 'one' }, '/tmp')).toBe("'one/tmp'")
  expect(await said({ WHOSE: 'two' }, '/tmp')).toBe("'two/tmp'")
  expect(await said({ WHOSE: 'one' }, '/')).toBe("'one/'")
})

test('what ends while it waits is replaced with its cell', { timeout }, async ({ skip }) => {
  if (unavailable !== undefined) skip(unavailable)
  const mark = newMark()
  await using pool = await SandboxPool.create({ platform, language: 'python', env: envOf(mark), size: 1 })
  await filled(pool)
  const before = marked(mark)
  expect(before.length).toBe(1)
  process.kill(before[0] as number, 'SIGKILL')
  await expect.poll(() => marked(mark).filter((pid) => !before.includes(pid)).length, { timeout: 30_000 }).toBe(1)
  await filled(pool)
  await using sandbox = await pool.acquire()
  expect(await sandbox.contexts.list()).toMatchObject([{ state: 'idle', restarts: 0 }])
  const { text, isStateKept, status } = await sandbox.code('1 + 1')
  expect([text, isStateKept, status]).toEqual(['2', true, 'ok'])
})

test('its lifetime and its idleness begin when it is handed out', { timeout }, async ({ skip }) => {
  if (unavailable !== undefined) skip(unavailable)
  await using pool = await SandboxPool.create({ platform, language: 'python', lifetime: '2s', idle: '1s', size: 1, max: 1 })
  await filled(pool)
  const waited = (await pool.status()).total
  await sleep(2200)
  expect([waited, await pool.status()]).toMatchObject([1, { total: 1, available: 1 }])
  const sandbox = await pool.acquire()
  expect((await sandbox.code('1 + 1')).text).toBe('2')
  await expect
    .poll(
      () =>
        sandbox.info().then(
          ({ state }) => state,
          (error: { code: string }) => error.code,
        ),
      { timeout: 20_000 },
    )
    .toBe('expired')
})

test('what cannot be had is refused by name', { timeout }, async ({ skip }) => {
  if (unavailable !== undefined) skip(unavailable)
  const refusal = (options: object): Promise<unknown> => SandboxPool.create({ platform, size: 1, ...options }).catch((error: unknown) => error)
  expect(await refusal({ language: 'cobol' })).toMatchObject({ code: 'invalid', message: expect.stringMatching(/^language: /) as string })
  expect(await refusal({ language: 'python', fresh: 'liner' })).toMatchObject({ code: 'invalid', message: expect.stringMatching(/^language: /) as string })
  const [probe] = await platform.probe()
  if (probe?.features.commands.available) expect(await refusal({ language: 'python', commands: ['true'] })).toMatchObject({ code: 'unsupported' })
  const taken = platform.pools.take({}, { language: 'cobol' as Language })
  await expect(taken).rejects.toMatchObject({ code: 'invalid', message: expect.stringMatching(/^language: /) as string })
})

test('unasked, fewer wait where each takes more of what is free', () => {
  const settings = { queue: 1, recycleAfter: 1000, fresh: 'cell' as const }
  const ground = { machine: { processors: 8, freeBytes: () => 2 ** 30 }, bounds: { maxSandboxes: 100, answerMs: 1000 } }
  const sizeWith = (language?: Language): number => sizesFor({ ...settings, language }, ground).size
  expect([sizeWith(), sizeWith('bash'), sizeWith('python'), sizeWith('javascript')]).toEqual([16, 16, 8, 3])
})

test('interpreters that wait keep no process alive, and a process that ends leaves none', { timeout }, async ({ skip }) => {
  if (unavailable !== undefined) skip(unavailable)
  const { ended } = await startScript(new URL('programs/leave-a-pool.ts', import.meta.url), ['code'])
  const { stdout, stderr, code } = await ended
  const [waiting, left] = stdout.split('\n').map((line) => (line === '' ? undefined : (JSON.parse(line) as unknown)))
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
  expect((waiting as { readonly traces: number }).traces).toBeGreaterThan(0)
  expect(tracesOf(left as string[])).toEqual([])
})
