import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import type { Json } from '../../src/contract/posture.js'
import type { Engine } from '../../src/engine/engine.js'
import { listen } from './aside-said.js'
import { collect, rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'
import { allowAll, answer } from './postures.js'
import { isRunning, markedSleep, waitUntil } from './processes.js'

let driver: PlainDriver
let engine: Engine

beforeEach(() => {
  driver = new PlainDriver()
  engine = createPlainEngine(driver, { filter: () => Promise.resolve(allowAll), bounds: { maxRuns: 3 } })
})

afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  expect(driver.openCells).toBe(0)
})

const echo = 'cat <&3 >&4'

describe('what a program with an aside must be like', () => {
  const withAside = [0, 1, 2, 3, 4]

  let isSettled = false
  let hasSeenFirst = false

  /** What the kernel tells of every program's descriptors, where it is asked. */
  function tellDescriptors(found: Json): string[] {
    const depths: string[] = []
    isSettled = false
    hasSeenFirst = false
    answer(driver, (subject) => {
      if (subject.kind !== 'program') return {}
      hasSeenFirst = true
      if (isSettled) depths.push(subject.depth)
      return isSettled && subject.depth === 'full' ? { descriptors: found } : {}
    })
    return depths
  }

  /** Its first program, which is made ready with it and has no aside, was looked at. */
  async function createSettled(): Promise<string> {
    const { id } = await engine.create({})
    await waitUntil(() => hasSeenFirst)
    isSettled = true
    return id
  }

  test('0 to 4 are open, and the first of a user is looked at in full', async () => {
    const depths = tellDescriptors(withAside)
    const id = await createSettled()
    for (let each = 0; each < 2; each += 1) {
      const program = await engine.startAside(id, { command: 'echo aside >&4' })
      const { said, over } = listen(program)
      await over
      expect(said.aside).toBe('aside\n')
      await program.ended
    }
    expect(depths).toEqual(['full', 'short'])
  })

  test.each<[string, Json, string]>([
    ['one more', [0, 1, 2, 3, 4, 5], 'descriptors of pid 7: has 5 besides'],
    ['one fewer', [0, 1, 2, 3], 'descriptors of pid 7: lacks 4'],
    ['those of a program without one', [0, 1, 2], 'descriptors of pid 7: lacks 3; lacks 4'],
    ['others', [0, 1, 2, 3, 5], 'descriptors of pid 7: has 5 besides; lacks 4'],
  ])('with %s it never runs, and its cell is closed', async (_, found, message) => {
    tellDescriptors(found)
    const id = await createSettled()
    const { marker, command } = markedSleep()
    const error = (await rejectionOf(engine.startAside(id, { command }))) as SandboxError
    expect([error.code, error.message]).toEqual(['not-enforced', message])
    expect([driver.openCells, isRunning(marker)]).toEqual([0, false])
  })

  test('a program without one must not have its descriptors, also after one that had them', async () => {
    tellDescriptors(withAside)
    isSettled = true
    // A profile of its own keeps it from having a program made ready, which would have been looked at before.
    const { id } = await engine.create({ seccomp: { defaultAction: 'SCMP_ACT_ALLOW' } })
    const { over } = listen(await engine.startAside(id, { command: 'true' }))
    await over
    expect(await rejectionOf(engine.start(id, { command: 'true' }))).toMatchObject({
      code: 'not-enforced',
      message: 'descriptors of pid 7: has 3 besides; has 4 besides',
    })
  })
})

describe('a program with an aside', () => {
  let id: string

  beforeEach(async () => {
    ;({ id } = await engine.create({}))
  })

  test('is a process of the sandbox: told of, counted and attached to, but not read', async () => {
    const program = await engine.startAside(id, { command: `${echo}; echo out`, tag: 'kernel' })
    const { said, over } = listen(program)
    expect(await engine.processes.list(id)).toEqual([
      expect.objectContaining({ pid: program.pid, tag: 'kernel', command: `${echo}; echo out`, isTerminal: false }),
    ])
    const attached = await engine.processes.attach(id, 'kernel', { replay: true })
    const seen = collect(attached)
    expect(await rejectionOf(attached.write(Buffer.from('x')))).toMatchObject({ code: 'conflict' })
    expect(await rejectionOf(attached.endInput())).toMatchObject({ code: 'conflict' })
    expect(await rejectionOf(engine.startAside(id, { command: 'true', tag: 'kernel' }))).toMatchObject({ code: 'conflict' })
    await program.write(Buffer.from('heard'))
    await program.endInput()
    await over
    expect(said).toEqual({ stdout: 'out\n', stderr: '', aside: 'heard' })
    expect(await seen).toMatchObject({ stdout: '', stderr: '', outcome: { kind: 'exited', code: 0 } })
    expect((await engine.processes.list(id)).map(({ state }) => state)).toEqual(['ended'])
    const { runs, outputBytes } = await engine.usage(id)
    expect([runs, outputBytes]).toEqual([1, 4])
  })

  test('is killed and signalled by whoever attaches, and by its owner', async () => {
    const first = await engine.startAside(id, { command: 'sleep 60' })
    const second = await engine.startAside(id, { command: 'sleep 60' })
    listen(first)
    listen(second)
    await (await engine.processes.attach(id, first.pid)).kill('enough')
    await second.signal('SIGINT')
    expect((await first.ended).outcome).toEqual({ kind: 'killed', reason: 'enough' })
    expect((await second.ended).outcome).toEqual({ kind: 'signaled', signal: 'SIGINT' })
  })

  test('takes one of the places that programs have', async () => {
    const programs = await Promise.all([1, 2, 3].map(() => engine.startAside(id, { command: 'cat <&3' })))
    expect(await rejectionOf(engine.start(id, { command: 'true' }))).toMatchObject({ code: 'busy' })
    expect(await rejectionOf(engine.startAside(id, { command: 'true' }))).toMatchObject({ code: 'busy' })
    await programs[0]?.endInput()
    if (programs[0]) await listen(programs[0]).over
    await programs[0]?.ended
    expect((await collect(await engine.start(id, { command: 'echo room' }))).stdout).toBe('room\n')
  })

  test('that cannot be executed says so as an outcome, and has nothing to read', async () => {
    const program = await engine.startAside(id, { command: ['no-such-program'], tag: 'again' })
    const { said, over } = listen(program)
    await over
    expect(said).toEqual({ stdout: '', stderr: '', aside: '' })
    expect([program.pid, (await program.ended).outcome.kind]).toEqual([0, 'not-started'])
    expect(await rejectionOf(program.write(Buffer.from('x')))).toMatchObject({ code: 'conflict' })
    await program.kill()
    await listen(await engine.startAside(id, { command: 'true', tag: 'again' })).over
  })

  test.each([
    ['terminal', { terminal: { cols: 80, rows: 24 } }],
    ['timeout', { timeout: '1s' }],
    ['output', { output: {} }],
  ] as const)('has no %s', async (field, part) => {
    expect(await rejectionOf(engine.startAside(id, { command: 'true', ...part }))).toMatchObject({
      code: 'invalid',
      message: expect.stringContaining(field) as unknown,
    })
  })

  test('cannot be asked for by a request, which knows no such field', async () => {
    expect(await rejectionOf(engine.start(id, { command: 'true', aside: true } as never))).toMatchObject({ code: 'invalid' })
    expect(await rejectionOf(engine.startAside(id, 'true' as never))).toMatchObject({ code: 'invalid' })
    expect(await rejectionOf(engine.startAside(id, null as never))).toMatchObject({ code: 'invalid' })
  })

  test('is nobody’s start any more when the signal of its start aborts', async () => {
    const controller = new AbortController()
    const program = await engine.startAside(id, { command: echo }, { signal: controller.signal })
    const { said, over } = listen(program)
    controller.abort(new Error('too late'))
    await program.write(Buffer.from('alive'))
    await program.endInput()
    await over
    expect([said.aside, (await program.ended).outcome]).toEqual(['alive', { kind: 'exited', code: 0 }])
  })

  test('aborted before or while it starts is not there', async () => {
    const { marker, command } = markedSleep()
    const reason = new Error('not wanted')
    expect(await rejectionOf(engine.startAside(id, { command }, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    const controller = new AbortController()
    const starting = engine.startAside(id, { command }, { signal: controller.signal })
    controller.abort(reason)
    expect(await rejectionOf(starting)).toBe(reason)
    await waitUntil(() => !isRunning(marker))
    expect(await engine.processes.list(id)).toEqual([])
  })

  test('whose aside nobody reads prints on, and whose output nobody reads answers on', async () => {
    const quiet = await engine.startAside(id, { command: 'yes >&4 & read line <&3; echo printed; kill $!; exit 3' })
    const printed = quiet.output[Symbol.asyncIterator]()
    await quiet.write(Buffer.from('go\n'))
    expect(Buffer.from((await printed.next()).value.bytes as Uint8Array).toString()).toBe('printed\n')
    expect((await printed.next()).done).toBe(true)
    for await (const _ of quiet.aside);
    expect((await quiet.ended).outcome).toEqual({ kind: 'exited', code: 3 })

    const loud = await engine.startAside(id, { command: `yes & ${echo}; kill $!; exit 4` })
    const told = loud.aside[Symbol.asyncIterator]()
    for (const word of ['one', 'two']) {
      await loud.write(Buffer.from(word))
      expect(Buffer.from((await told.next()).value as Uint8Array).toString()).toBe(word)
    }
    await loud.endInput()
    expect((await told.next()).done).toBe(true)
    for await (const _ of loud.output);
    expect((await loud.ended).outcome).toEqual({ kind: 'exited', code: 4 })
  })

  test('of which both streams are left goes on without a reader', async () => {
    const program = await engine.startAside(id, { command: 'head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&4; exit 6' })
    for await (const _ of program.output) break
    for await (const _ of program.aside) break
    const { outcome, usage } = await program.ended
    expect([outcome, usage.outputBytes]).toEqual([{ kind: 'exited', code: 6 }, 3_000_000])
  })

  test('has one reader of each', async () => {
    const program = await engine.startAside(id, { command: 'true' })
    await listen(program).over
    expect(() => program.output[Symbol.asyncIterator]()).toThrow(SandboxError)
    expect(() => program.aside[Symbol.asyncIterator]()).toThrow(SandboxError)
  })

  test('ends with its sandbox, whoever reads it or does not', async () => {
    const { marker, command } = markedSleep()
    const read = await engine.startAside(id, { command })
    const unread = await engine.startAside(id, { command: 'yes >&4' })
    const { over } = listen(read)
    await waitUntil(() => isRunning(marker))
    await engine.close(id)
    expect(await rejectionOf(over)).toMatchObject({ code: 'closed', message: `sandbox ${id} was closed` })
    expect(await rejectionOf(read.ended)).toMatchObject({ code: 'closed' })
    expect(await rejectionOf(unread.ended)).toMatchObject({ code: 'closed' })
    expect(await rejectionOf(read.write(Buffer.from('x')))).toMatchObject({ code: 'closed' })
    expect(isRunning(marker)).toBe(false)
  })

  test('is told when its cell is lost under it', async () => {
    const program = await engine.startAside(id, { command: 'sleep 60' })
    const { over } = listen(program)
    driver.cells[0]?.child.kill('SIGKILL')
    expect(await rejectionOf(over)).toMatchObject({ code: 'broken' })
    expect(await rejectionOf(program.ended)).toMatchObject({ code: 'broken' })
  })

  test('stands still with its sandbox, and goes on where it was', async () => {
    const program = await engine.startAside(id, { command: echo })
    const { said, over } = listen(program)
    await program.write(Buffer.from('one '))
    await waitUntil(() => said.aside === 'one ')
    await engine.life.pause(id)
    expect(await rejectionOf(program.kill())).toMatchObject({ code: 'conflict' })
    expect(await rejectionOf(engine.startAside(id, { command: 'true' }))).toMatchObject({ code: 'conflict' })
    await program.write(Buffer.from('two'))
    await engine.life.resume(id)
    await program.endInput()
    await over
    expect([said.aside, (await program.ended).outcome]).toEqual(['one two', { kind: 'exited', code: 0 }])
  })

  test('is of use to someone while it is talked with, and idle while it waits', { timeout: 60_000 }, async () => {
    const { id: idle } = await engine.create({ idle: 1500 })
    const program = await engine.startAside(idle, { command: echo })
    const { said, over } = listen(program)
    const begun = performance.now()
    while (performance.now() - begun < 4000) {
      const before = said.aside.length
      await program.write(Buffer.from('.'))
      await waitUntil(() => said.aside.length > before)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    expect(await rejectionOf(over)).toMatchObject({ code: expect.stringMatching(/expired|closed/) as unknown })
    expect(await rejectionOf(program.ended)).toMatchObject({ code: expect.stringMatching(/expired|closed/) as unknown })
  })
})
