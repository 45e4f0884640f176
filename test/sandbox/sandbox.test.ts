import { Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SandboxError } from '../../src/contract/errors.js'
import type { Engine } from '../../src/engine/engine.js'
import { verifyReceipt } from '../../src/receipt/index.js'
import { type InputSource, type RunEvent, Sandbox } from '../../src/sandbox/index.js'
import { rejectionOf } from '../engine/collect.js'
import { createPlainEngine, PlainDriver } from '../engine/plain-driver.js'
import { isRunning, markedSleep, waitUntil } from '../engine/processes.js'

let platform: Engine
let sandbox: Sandbox

beforeEach(async () => {
  platform = createPlainEngine(new PlainDriver())
  sandbox = await Sandbox.create({ platform, name: 'this' })
})

afterEach(async () => {
  await platform[Symbol.asyncDispose]()
})

describe('a sandbox', () => {
  test('is created, connected to, listed, told of and closed', async () => {
    const again = await Sandbox.connect(sandbox.id, { platform })
    expect(again.id).toBe(sandbox.id)
    expect(again).toBeInstanceOf(Sandbox)
    const listed = []
    for await (const info of Sandbox.list({ name: 'this' }, { platform })) listed.push(info)
    expect(listed).toEqual([await sandbox.info()])
    expect(await Sandbox.closeAll({ name: 'this' }, { platform })).toBe(1)
    await sandbox.close()
    expect(await rejectionOf(Sandbox.connect(sandbox.id, { platform }))).toMatchObject({ code: 'closed' })
    expect(await rejectionOf(sandbox.run('true'))).toMatchObject({ code: 'closed' })
  })

  test('is given other limits, and tells what it used and what held', async () => {
    expect((await sandbox.limit({ time: '300ms' })).spec.limits).toMatchObject({ timeMs: 300, stated: ['time'] })
    expect((await sandbox.run('sleep 30')).outcome).toEqual({ kind: 'timed-out', by: 'wall', limitMs: 300 })
    expect(await sandbox.usage()).toMatchObject({ runs: 1, outputBytes: 0 })
    const receipt = await sandbox.receipt()
    expect(verifyReceipt(receipt)).toMatchObject({ valid: true, trusted: false })
    expect(receipt).toMatchObject({ sandbox: { id: sandbox.id, name: 'this' }, runs: [{ outcome: { kind: 'timed-out', by: 'wall' } }] })
    expect(receipt.controls.find(({ control }) => control === 'limit.time')).toMatchObject({ requested: 300, stated: 'spec', enforced: 300 })
  })

  test('is closed at the end of its scope', async () => {
    let id: string
    {
      await using scoped = await Sandbox.create({ platform })
      id = scoped.id
    }
    expect(await rejectionOf(platform.info(id))).toMatchObject({ code: 'closed' })
  })

  test('refuses what it does not know, by name', async () => {
    expect(await rejectionOf(Sandbox.create({ platform, nmae: 'x' } as never))).toMatchObject({ code: 'invalid', message: 'nmae: is not a known field' })
    expect(await rejectionOf(sandbox.run('true', { cdw: '/' } as never))).toMatchObject({ code: 'invalid', message: 'cdw: is not a known field' })
    const refused = { code: 'invalid', message: 'foo: is not a known field' }
    const options = { foo: 1 } as never
    const calls = [sandbox.usage(options), sandbox.receipt(options), sandbox.info(options), sandbox.limit({}, options), sandbox.spawn('true', options)]
    const others = [Sandbox.connect(sandbox.id, options), Sandbox.closeAll({}, options), platform.probe(options), platform.create({}, options)]
    for (const call of [...calls, ...others]) expect(await rejectionOf(call)).toMatchObject(refused)
    expect(() => Sandbox.list({}, options)).toThrow(expect.objectContaining(refused))
    expect(await rejectionOf(Sandbox.create())).toMatchObject({ code: 'invalid', message: 'platform: must be given here' })
  })

  test('that is aborted while it is created rejects with the reason', async () => {
    const reason = new Error('no')
    expect(await rejectionOf(Sandbox.create({ platform, signal: AbortSignal.abort(reason) }))).toBe(reason)
  })
})

describe('an awaited run', () => {
  test('gives back all there is to know, and does not throw for an exit code', async () => {
    const { usage, ...result } = await sandbox.run('printf out; printf err >&2; exit 3')
    expect(result).toEqual({
      outcome: { kind: 'exited', code: 3 },
      exitCode: 3,
      stdout: 'out',
      stderr: 'err',
      stdoutBytes: new Uint8Array(Buffer.from('out')),
      stderrBytes: new Uint8Array(Buffer.from('err')),
      truncated: false,
      driver: 'plain',
    })
    expect(usage.outputBytes).toBe(6)
  })

  test('has no exit code unless the program exited', async () => {
    expect((await sandbox.run('kill -TERM $$')).exitCode).toBeUndefined()
    expect((await sandbox.run(['no-such-program'])).exitCode).toBeUndefined()
    expect((await sandbox.run('sleep 30', { timeout: 50 })).exitCode).toBeUndefined()
  })

  test('keeps bytes as they are and shows text with replacements, its byte order mark included', async () => {
    const result = await sandbox.run("printf '\\357\\273\\277a\\377\\000b'")
    expect([...result.stdoutBytes]).toEqual([0xef, 0xbb, 0xbf, 0x61, 0xff, 0, 0x62])
    expect(result.stdout).toBe('\uFEFFa\uFFFD\0b')
  })

  test('is kept up to the output limit, and goes on beyond it when told to truncate', async () => {
    const killed = await sandbox.run('yes', { output: 1000 })
    expect([killed.outcome, killed.stdoutBytes.length, killed.truncated]).toEqual([{ kind: 'output-limit', limitBytes: 1000 }, 1000, true])
    const cut = await sandbox.run('head -c 5000 /dev/zero; exit 2', { output: '1k', onOutputLimit: 'truncate' })
    expect([cut.exitCode, cut.stdoutBytes.length, cut.truncated, cut.usage.outputBytes]).toEqual([2, 1024, true, 5000])
  })

  test('may be awaited again, chained, raced and caught like any promise', async () => {
    const run = sandbox.run('echo x')
    expect(await run.then(({ stdout }) => stdout)).toBe('x\n')
    expect((await run).stdout).toBe('x\n')
    let settled = 0
    await run.finally(() => {
      settled += 1
    })
    expect(settled).toBe(1)
    expect(await sandbox.run('').catch((error: unknown) => (error as SandboxError).code)).toBe('invalid')
  })

  test('rejects with the reason when it is aborted, before and during', async () => {
    const reason = new Error('enough')
    expect(await rejectionOf(sandbox.run('true', { signal: AbortSignal.abort(reason) }))).toBe(reason)
    const { marker, command } = markedSleep()
    const controller = new AbortController()
    const run = rejectionOf(sandbox.run(command, { signal: controller.signal }))
    await waitUntil(() => isRunning(marker))
    controller.abort(reason)
    expect(await run).toBe(reason)
    expect(isRunning(marker)).toBe(false)
  })
})

describe('stdin', () => {
  const sources: [string, () => InputSource][] = [
    ['a string', () => 'päng'],
    ['bytes', () => new TextEncoder().encode('päng')],
    ['a web stream', () => new Blob(['pä', 'ng']).stream()],
    ['a Node.js stream', () => Readable.from([Buffer.from('pä'), 'ng'])],
    [
      'an async iterable',
      () =>
        (async function* () {
          yield 'pä'
          yield Buffer.from('ng')
        })(),
    ],
  ]

  test.each(sources)('is fed from %s', async (_, source) => {
    expect((await sandbox.run(['cat'], { stdin: source() })).stdout).toBe('päng')
  })

  test('of many megabytes comes through whole', async () => {
    const bytes = Buffer.alloc(20 * 2 ** 20, 'abcdefg')
    expect((await sandbox.run('cksum', { stdin: bytes })).stdout).toBe((await sandbox.run('yes abcdefg | tr -d "\\n" | head -c 20971520 | cksum')).stdout)
  })

  test('is empty when nothing or an empty string is given', async () => {
    expect((await sandbox.run('cat; echo end')).stdout).toBe('end\n')
    expect((await sandbox.run('cat; echo end', { stdin: '' })).stdout).toBe('end\n')
  })

  test('that is longer than the program cares for does not hold its end, and the source is let go', async () => {
    let isReleased = false

    async function* endless() {
      try {
        for (;;) yield new Uint8Array(100_000)
      } finally {
        isReleased = true
      }
    }
    expect((await sandbox.run('head -c 3 >/dev/null; exit 6', { stdin: endless() })).exitCode).toBe(6)
    await waitUntil(() => isReleased)
  })

  test('that never comes does not hold the end of a program that does not read', async () => {
    const silent = new ReadableStream({})
    expect((await sandbox.run('exit 2', { stdin: silent })).exitCode).toBe(2)
  })

  test('whose source fails kills the run, which rejects with that failure', async () => {
    async function* failing() {
      yield 'part'
      throw new Error('the disk is gone')
    }
    expect(await rejectionOf(sandbox.run('cat; sleep 30', { stdin: failing() }))).toMatchObject({ message: 'the disk is gone' })
  })

  test('of the wrong kind is refused before anything starts', async () => {
    expect(await rejectionOf(sandbox.run('touch started', { stdin: 7 as never }))).toMatchObject({
      code: 'invalid',
      message: 'stdin: must be a string, a Uint8Array, an ArrayBuffer, a ReadableStream or an iterable of these',
    })
    expect(await rejectionOf(sandbox.run('cat', { stdin: Readable.from([{ an: 'object' }]) }))).toMatchObject({ code: 'invalid' })
    expect((await sandbox.run('ls')).stdout).toBe('')
  })
})

async function eventsOf(run: AsyncIterable<RunEvent>): Promise<string[]> {
  const seen = []
  for await (const event of run) seen.push(event.type === 'exit' ? `exit ${event.exitCode}` : `${event.type} ${Buffer.from(event.bytes).toString()}`)
  return seen
}

describe('an iterated run', () => {
  test('hands over the output as it comes, then the end', async () => {
    expect(await eventsOf(sandbox.run('echo 1; sleep 0.1; echo 2 >&2; sleep 0.1; exit 5'))).toEqual(['stdout 1\n', 'stderr 2\n', 'exit 5'])
  })

  test.each([
    ['has no output limit where none is stated', {}, 12_000_000],
    ['has the output limit that is stated', { output: 10 }, 10],
  ])('%s', async (_, limits, most) => {
    const limited = await Sandbox.create({ platform, limits })
    let bytes = 0
    for await (const event of limited.run('head -c 12000000 /dev/zero')) if (event.type === 'stdout') bytes += event.bytes.length
    expect(bytes).toBe(most)
  })

  test('that is left early is killed, and nothing of it is left', async () => {
    const { marker, command } = markedSleep()
    for await (const _ of sandbox.run(`echo up; ${command}`)) break
    expect(isRunning(marker)).toBe(false)
  })

  test('that is never advanced is killed when it is returned from', async () => {
    const { marker, command } = markedSleep()
    const iterator = sandbox.run(command)[Symbol.asyncIterator]()
    await waitUntil(() => isRunning(marker))
    await iterator.return?.()
    expect(isRunning(marker)).toBe(false)
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
  })

  test('is consumed once', async () => {
    const run = sandbox.run('echo x')
    const first = eventsOf(run)
    expect(await rejectionOf(eventsOf(run))).toMatchObject({ code: 'conflict' })
    expect(await rejectionOf(run)).toMatchObject({ code: 'conflict' })
    expect(await first).toEqual(['stdout x\n', 'exit 0'])
    const awaited = sandbox.run('echo x')
    await awaited
    expect(await rejectionOf(eventsOf(awaited))).toMatchObject({ code: 'conflict' })
  })

  test('that is first asked for later was captured, and is handed over whole', async () => {
    const run = sandbox.run('echo 1; echo 2 >&2; echo 3')
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(await eventsOf(run)).toEqual(['stdout 1\n3\n', 'stderr 2\n', 'exit 0'])
  })

  test('throws what went wrong', async () => {
    expect(await rejectionOf(eventsOf(sandbox.run('true', { cwd: '/no/such' })))).toMatchObject({ code: 'invalid', message: 'cwd: /no/such does not exist' })
    const reason = new Error('stop')
    const controller = new AbortController()
    const seen = rejectionOf(
      (async () => {
        for await (const event of sandbox.run('echo up; sleep 30', { signal: controller.signal })) if (event.type === 'stdout') controller.abort(reason)
      })(),
    )
    expect(await seen).toBe(reason)
  })
})
