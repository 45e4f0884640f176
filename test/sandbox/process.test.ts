import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine/engine.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { rejectionOf } from '../engine/collect.js'
import { createPlainEngine, PlainDriver } from '../engine/plain-driver.js'
import { isRunning, markedSleep, waitUntil } from '../engine/processes.js'

let platform: Engine
let sandbox: Sandbox

beforeEach(async () => {
  platform = createPlainEngine(new PlainDriver())
  sandbox = await Sandbox.create({ platform, limits: { time: '300ms' } })
})

afterEach(async () => {
  await platform[Symbol.asyncDispose]()
})

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  return new Response(stream as never).text()
}

describe('a process', () => {
  test('is written to and read from while it runs', async () => {
    const process = await sandbox.spawn('while read line; do echo "got $line"; done; echo bye >&2; exit 4')
    expect(process.pid).toBeGreaterThan(0)
    const reader = process.stdout.getReader()
    await process.stdin.write('one\n')
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('got one\n')
    await process.stdin.end('two\n')
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('got two\n')
    expect((await reader.read()).done).toBe(true)
    expect(await textOf(process.stderr)).toBe('bye\n')
    expect((await process.wait()).outcome).toEqual({ kind: 'exited', code: 4 })
    expect((await process.wait()).outcome).toEqual({ kind: 'exited', code: 4 })
  })

  test('takes no input after its end, whether it still runs or not, and may be ended twice', async () => {
    const process = await sandbox.spawn('cat; echo done')
    expect(await rejectionOf(process.stdin.end(7 as never))).toMatchObject({ code: 'invalid' })
    await process.stdin.end('last\n')
    expect(await rejectionOf(process.stdin.write('more'))).toMatchObject({ code: 'conflict', message: 'stdin: nothing can be written after its end' })
    expect(await textOf(process.stdout)).toBe('last\ndone\n')
    await process.wait()
    expect(await rejectionOf(process.stdin.write('more'))).toMatchObject({ code: 'conflict' })
    expect(await rejectionOf(process.stdin.end('more'))).toMatchObject({ code: 'conflict' })
    await process.stdin.end()
  })

  test('is piped into and iterated as web streams', async () => {
    const process = await sandbox.spawn(['tr', 'a-z', 'A-Z'])
    const piping = new Blob(['hello ', 'there']).stream().pipeTo(process.stdin.writable as never)
    let seen = ''
    for await (const bytes of process.stdout) seen += Buffer.from(bytes).toString()
    await piping
    expect(seen).toBe('HELLO THERE')
  })

  test('is fed from a source that is given, to its end', async () => {
    const process = await sandbox.spawn(['cat'], { stdin: 'given' })
    expect(await textOf(process.stdout)).toBe('given')
  })

  test('outlives the wall time of runs, and has one of its own when it is given', async () => {
    const lasting = await sandbox.spawn('sleep 0.6; exit 9')
    expect((await lasting.wait()).outcome).toEqual({ kind: 'exited', code: 9 })
    const timed = await sandbox.spawn('sleep 30', { timeout: 100 })
    expect((await timed.wait()).outcome).toEqual({ kind: 'timed-out', by: 'wall', limitMs: 100 })
  })

  test('is never held back by what nobody reads: the end of it is kept, the rest counted', async () => {
    const process = await sandbox.spawn('head -c 2000000 /dev/zero >&2; sleep 0.1; head -c 3000000 /dev/zero; printf END')
    const { outcome, usage } = await process.wait()
    expect([outcome, usage.outputBytes]).toEqual([{ kind: 'exited', code: 0 }, 5_000_003])
    const kept = await textOf(process.stdout)
    expect([kept.length, kept.endsWith('END')]).toEqual([2 ** 20, true])
    expect(await textOf(process.stderr)).toBe('')
    expect(process.droppedBytes).toEqual({ stdout: 3_000_003 - 2 ** 20, stderr: 2_000_000 })
  })

  test('whose stdout alone is read does not hang on its stderr', async () => {
    const process = await sandbox.spawn('head -c 3000000 /dev/zero >&2; echo done')
    expect(await textOf(process.stdout)).toBe('done\n')
  })

  test('whose reader left goes on', async () => {
    const process = await sandbox.spawn('echo ready; head -c 3000000 /dev/zero; exit 3')
    for await (const _ of process.stdout) break
    expect((await process.wait()).outcome).toEqual({ kind: 'exited', code: 3 })
  })

  test('is signaled by name and killed with its descendants', async () => {
    const { marker, command } = markedSleep()
    const process = await sandbox.spawn(`trap "echo caught" USR1; echo up; setsid ${command} & while :; do sleep 0.02; done`)
    const reader = process.stdout.getReader()
    await reader.read()
    await waitUntil(() => isRunning(marker))
    await process.signal('SIGUSR1')
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('caught\n')
    await process.kill()
    expect(isRunning(marker)).toBe(false)
    expect((await process.wait()).outcome).toEqual({ kind: 'killed', reason: 'killed by its owner' })
  })

  test('killed with a signal gets that signal, and may go on', async () => {
    const process = await sandbox.spawn('trap "echo heard" TERM; echo up; while :; do sleep 0.02; done')
    const reader = process.stdout.getReader()
    await reader.read()
    await process.kill('SIGTERM')
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('heard\n')
    expect(await rejectionOf(process.kill('SIGNONSENSE'))).toMatchObject({ code: 'invalid' })
    await process.kill('SIGKILL')
    expect((await process.wait()).outcome).toMatchObject({ kind: 'killed' })
    await process.kill('SIGTERM')
    await process.kill()
  })

  test('is killed at the end of its scope', async () => {
    const { marker, command } = markedSleep()
    {
      await using process = await sandbox.spawn(command)
      expect(process.pid).toBeGreaterThan(0)
      await waitUntil(() => isRunning(marker))
    }
    expect(isRunning(marker)).toBe(false)
  })

  test('is not ended by the signal of the call that started it, which is for the start alone', async () => {
    const controller = new AbortController()
    const lasting = await sandbox.spawn('read line; exit 6', { signal: controller.signal })
    controller.abort('reason')
    await lasting.stdin.end('go\n')
    expect((await lasting.wait()).outcome).toEqual({ kind: 'exited', code: 6 })
    expect(await rejectionOf(sandbox.spawn('sleep 30', { signal: controller.signal, tag: 'never' }))).toBe('reason')
    const { marker, command } = markedSleep()
    const called = new AbortController()
    const starting = rejectionOf(sandbox.spawn(command, { signal: called.signal, tag: 'never' }))
    called.abort('too late')
    expect(await starting).toBe('too late')
    expect(isRunning(marker)).toBe(false)
    await (await sandbox.spawn('true', { tag: 'never' })).wait()
  })

  test('that did not start is told by its end', async () => {
    const process = await sandbox.spawn(['no-such-program'])
    expect(process.pid).toBe(0)
    expect(await textOf(process.stdout)).toBe('')
    expect((await process.wait()).outcome).toMatchObject({ kind: 'not-started', code: 127 })
  })

  test('ends with its sandbox: its end, its streams and its input are told why', async () => {
    const process = await sandbox.spawn(['cat'])
    const reading = rejectionOf(textOf(process.stdout))
    await sandbox.close()
    expect(await rejectionOf(process.wait())).toMatchObject({ code: 'closed' })
    expect(await reading).toMatchObject({ code: 'closed' })
    expect(await rejectionOf(process.stdin.write('x'))).toMatchObject({ code: 'closed' })
  })

  test('is waited for until a signal says so, and lives on', async () => {
    const process = await sandbox.spawn('read line; exit 5')
    const controller = new AbortController()
    const waiting = rejectionOf(process.wait({ signal: controller.signal }))
    controller.abort('no longer')
    expect(await waiting).toBe('no longer')
    expect(await rejectionOf(process.wait({ signal: controller.signal }))).toBe('no longer')
    expect(await rejectionOf(process.wait({ timeout: 5 } as never))).toMatchObject({ code: 'invalid', message: 'timeout: is not a known field' })
    await process.stdin.end('x\n')
    expect((await process.wait({ signal: new AbortController().signal })).outcome).toEqual({ kind: 'exited', code: 5 })
  })

  test('that has ended takes no input, and says so to who writes, also of what it had not taken', async () => {
    const ended = { code: 'conflict', message: 'stdin: the program has ended' }
    const process = await sandbox.spawn(['sleep', '30'])
    const waiting = rejectionOf(process.stdin.write(new Uint8Array(5_000_000)))
    await process.kill()
    expect(await waiting).toMatchObject(ended)
    expect(await rejectionOf(process.stdin.write('x'))).toMatchObject(ended)
    const writer = process.stdin.writable.getWriter()
    writer.closed.catch(() => undefined)
    expect(await rejectionOf(writer.write('x'))).toMatchObject(ended)
    const terminal = await sandbox.terminal({ command: ['true'] })
    await terminal.wait()
    expect(await rejectionOf(terminal.write('x'))).toMatchObject(ended)
  })
})
