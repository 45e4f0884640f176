import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { PlatformProcess } from '../../src/contract/platform.js'
import type { RunRequest } from '../../src/contract/run.js'
import type { Engine } from '../../src/engine/engine.js'
import { collect, rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'
import { isRunning, markedSleep, waitUntil } from './processes.js'

let engine: Engine
let id: string

beforeEach(async () => {
  engine = createPlainEngine(new PlainDriver())
  id = (await engine.create({ ring: 1000 })).id
})
afterEach(() => engine[Symbol.asyncDispose]())

function keep(command: RunRequest['command'], request: Partial<RunRequest> = {}): Promise<PlatformProcess> {
  return engine.start(id, { command, stdin: true, background: true, ...request })
}

async function readLine(program: PlatformProcess): Promise<string> {
  for await (const { bytes } of program.output) return Buffer.from(bytes).toString()
  return ''
}

const waiting = { timeout: 20_000, interval: 10 }

async function textOf(program: PlatformProcess): Promise<string> {
  let text = ''
  for await (const { bytes } of program.output) text += Buffer.from(bytes).toString()
  return text
}

describe('a process that is kept', () => {
  test('is attached to by its pid or tag, by several at once, from its beginning or from what comes next', async () => {
    const first = await keep('echo before; read line; echo "after $line"; exit 5', { tag: 'talk' })
    expect(await readLine(first)).toBe('before\n')
    const [byTag, byPid, late] = [
      await engine.processes.attach(id, 'talk', { replay: true }),
      await engine.processes.attach(id, first.pid, { replay: true }),
      await engine.processes.attach(id, first.pid),
    ]
    await byPid.write(Buffer.from('x\n'))
    const all = { outcome: { kind: 'exited', code: 5 }, stdout: 'before\nafter x\n' }
    expect(await Promise.all([first, byTag, byPid].map(collect))).toMatchObject([all, all, all])
    expect(await collect(late)).toMatchObject({ outcome: { kind: 'exited', code: 5 }, stdout: 'after x\n' })
    expect(byTag.pid).toBe(first.pid)
  })

  test('tells what is there now and no more to whoever does not follow', async () => {
    const first = await keep('echo before; echo aside >&2; read line; head -c 5000 /dev/zero; sleep 30', { tag: 'talk' })
    await readLine(first)
    const now = async (): Promise<string> => textOf(await engine.processes.attach(id, 'talk', { replay: true, follow: false }))
    await vi.waitFor(async () => expect(await now()).toBe('before\naside\n'), waiting)
    expect(await textOf(await engine.processes.attach(id, 'talk', { follow: false }))).toBe('')
    const early = await engine.processes.attach(id, 'talk', { replay: true, follow: false })
    await first.write(Buffer.from('\n'))
    await vi.waitFor(async () => expect((await now()).length).toBe(1000), waiting)
    let [seen, missed] = [0, 0]
    for await (const { bytes, dropped = 0 } of early.output) [seen, missed] = [seen + bytes.length, missed + dropped]
    expect(seen).toBe(0)
    expect(missed).toBeGreaterThanOrEqual('before\naside\n'.length)
    expect(await rejectionOf(engine.processes.attach(id, 'talk', { follow: 1 as never }))).toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('follow'),
    })
  })

  test('goes on when every reader has left, and tells the next what it missed', async () => {
    const first = await keep('echo ready; read line; head -c 5000 /dev/zero | tr "\\\\0" a; printf END; sleep 30')
    expect(await readLine(first)).toBe('ready\n')
    await first.write(Buffer.from('\n'))
    let seen = 0
    for await (const { bytes, dropped = 0 } of (await engine.processes.attach(id, first.pid, { replay: true })).output) {
      seen += bytes.length + dropped
      if (Buffer.from(bytes).toString().endsWith('END')) break
    }
    expect(seen).toBe(6 + 5000 + 3)
    await first.kill()
    const events = []
    for await (const { type, bytes, dropped } of first.output) events.push({ type, dropped, length: bytes.length })
    expect(events).toEqual([{ type: 'stdout', dropped: 4009, length: expect.any(Number) }, ...events.slice(1)])
    expect(events.reduce((sum, { length }) => sum + length, 0)).toBe(1000)
  })

  test('is signaled and killed through any view, with its descendants', async () => {
    const { marker, command } = markedSleep()
    await keep(`trap 'echo caught' TERM; echo up; ${command} & while :; do sleep 0.02; done`, { tag: 'busy' })
    const view = await engine.processes.attach(id, 'busy', { replay: true })
    const output = view.output[Symbol.asyncIterator]()
    await output.next()
    await waitUntil(() => isRunning(marker))
    await view.signal('SIGTERM')
    // The shell may tell of its children first, which the signal ended.
    let said = ''
    while (!said.includes('caught\n')) {
      const { done, value } = await output.next()
      expect(done ?? false).toBe(false)
      said += Buffer.from(value?.bytes ?? []).toString()
    }
    await (await engine.processes.attach(id, 'busy')).kill()
    expect(isRunning(marker)).toBe(false)
    expect((await view.ended).outcome).toEqual({ kind: 'killed', reason: 'killed by its owner' })
  })

  test('has a tag that no other that runs has, and that is free again when it has ended or did not start', async () => {
    const first = await keep('read line', { tag: 'one' })
    expect(await rejectionOf(keep('true', { tag: 'one' }))).toMatchObject({ code: 'conflict', message: expect.stringContaining("'one'") })
    await first.endInput()
    await first.ended
    expect((await (await keep(['no-such-program'], { tag: 'one' })).ended).outcome.kind).toBe('not-started')
    const [won, lost] = await Promise.allSettled([keep('exit 7', { tag: 'one' }), keep('true', { tag: 'one' })])
    expect([won.status, lost.status]).toEqual(['fulfilled', 'rejected'])
    await (won as PromiseFulfilledResult<PlatformProcess>).value.ended
    expect((await (await engine.processes.attach(id, 'one')).ended).outcome).toEqual({ kind: 'exited', code: 7 })
    const running = await keep('read line', { tag: 'one' })
    expect((await engine.processes.attach(id, 'one')).pid).toBe(running.pid)
  })

  test('is told of for a while after its end, with what it printed: the latest hundred', async () => {
    const first = await keep('echo first; exit 9', { tag: 'first' })
    await first.ended
    for (let batch = 0; batch < 10; batch += 1) {
      await Promise.all(Array.from({ length: 10 }, async (_, index) => (await keep(['true'], { tag: `${batch}-${index}` })).ended))
      if (batch === 8)
        expect(await collect(await engine.processes.attach(id, 'first', { replay: true }))).toMatchObject({ stdout: 'first\n', outcome: { code: 9 } })
    }
    const list = await engine.processes.list(id)
    expect([list.length, list.every(({ state, ending }) => state === 'ended' && ending?.outcome.kind === 'exited')]).toEqual([100, true])
    expect(await rejectionOf(engine.processes.attach(id, 'first'))).toMatchObject({ code: 'not-found' })
  })

  test('that has ended shares one bound with the others that have: the output of the oldest is forgotten, and counted as missed', async () => {
    const { id: roomy } = await engine.create({ ring: '4m' })
    const bytes = 4 * 2 ** 20
    const pids: number[] = []
    for (let index = 0; index < 3; index += 1) {
      const program = await engine.start(roomy, { command: ['head', '-c', String(bytes), '/dev/zero'], background: true })
      await program.ended
      pids.push(program.pid)
    }
    const seen = await Promise.all(
      pids.map(async (pid) => {
        let [held, missed] = [0, 0]
        for await (const { bytes: piece, dropped = 0 } of (await engine.processes.attach(roomy, pid, { replay: true })).output) {
          held += piece.length
          missed += dropped
        }
        return { held, missed }
      }),
    )
    const whole = { held: bytes, missed: 0 }
    expect(seen).toEqual([{ held: 0, missed: bytes }, whole, whole])
  })

  test('that is unknown, or named by what is no name, is refused', async () => {
    expect(await rejectionOf(engine.processes.attach(id, 'nobody'))).toMatchObject({ code: 'not-found', message: "there is no process 'nobody' that is kept" })
    expect(await rejectionOf(engine.processes.attach(id, 4_000_000))).toMatchObject({ code: 'not-found' })
    for (const name of [0, -1, 1.5, '', null, {}]) expect(await rejectionOf(engine.processes.attach(id, name as never))).toMatchObject({ code: 'invalid' })
    expect(await rejectionOf(engine.processes.attach(id, 1, { replay: 'yes' as never }))).toMatchObject({ code: 'invalid', message: /^replay: / })
    expect(await rejectionOf(engine.processes.attach(id, 1, { rewind: true } as never))).toMatchObject({ code: 'invalid' })
    expect(await rejectionOf(engine.start(id, { command: 'true', tag: 'x' }))).toMatchObject({ code: 'invalid', message: /^tag: / })
    expect(await rejectionOf(keep('true', { tag: 'a\nb' }))).toMatchObject({ code: 'invalid', message: /^tag: / })
    expect(await rejectionOf(engine.create({ ring: '65m' }))).toMatchObject({ code: 'invalid', message: /^ring: / })
  })

  test('ends with its sandbox, and whoever reads or waits is told why', async () => {
    const view = await keep(['cat'])
    const reading = rejectionOf(collect(view))
    await engine.close(id)
    expect(await reading).toMatchObject({ code: 'closed' })
    expect(await rejectionOf(view.ended)).toMatchObject({ code: 'closed' })
    expect(await rejectionOf(engine.processes.attach(id, view.pid))).toMatchObject({ code: 'closed' })
    expect(await rejectionOf(engine.processes.list(id))).toMatchObject({ code: 'closed' })
  })
})

describe('the list of processes', () => {
  test('tells of each that is kept its command, tag and state, and what it uses with all that it started', async () => {
    expect(await engine.processes.list(id)).toEqual([])
    const { marker, command } = markedSleep()
    const family = await keep(`(setsid ${command} &); ${command} & echo up; wait`, { tag: 'family' })
    const busy = await keep(['sh', '-c', 'while :; do :; done'])
    await readLine(family)
    await waitUntil(() => isRunning(marker))
    const isThere = async (): Promise<boolean> => {
      const [waits, works] = await engine.processes.list(id)
      return waits?.state === 'sleeping' && (works?.cpuMs ?? 0) >= 50
    }
    await expect.poll(isThere).toBe(true)
    const [one, other] = await engine.processes.list(id)
    expect(one).toMatchObject({ pid: family.pid, tag: 'family', state: 'sleeping', user: 'user', isTerminal: false, processes: 3 })
    expect(one?.memoryBytes).toBeGreaterThan(300_000)
    expect(one?.ending).toBeUndefined()
    expect(other).toMatchObject({ pid: busy.pid, command: ['sh', '-c', 'while :; do :; done'], state: 'running', processes: 1 })
    expect(other).not.toHaveProperty('tag')
    expect(other?.cpuMs).toBeGreaterThanOrEqual(50)
    await busy.signal('SIGSTOP')
    await expect.poll(async () => (await engine.processes.list(id))[1]).toMatchObject({ pid: busy.pid, state: 'stopped' })
    await Promise.all([busy.kill(), family.kill()])
    const ended = await engine.processes.list(id)
    expect(ended).toMatchObject([
      { state: 'ended', processes: 0, memoryBytes: 0, ending: { outcome: { kind: 'killed' } } },
      { state: 'ended', processes: 0, memoryBytes: 0, ending: { outcome: { kind: 'killed' } } },
    ])
  })
})
