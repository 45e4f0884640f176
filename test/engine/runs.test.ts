import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import type { RunRequest } from '../../src/contract/run.js'
import type { Engine } from '../../src/engine/engine.js'
import { collect, type Collected, rejectionOf } from './collect.js'
import { createPlainEngine, PlainDriver } from './plain-driver.js'
import { childrenOf, isRunning, markedSleep, waitUntil } from './processes.js'

let driver: PlainDriver
let engine: Engine
let id: string

beforeEach(async () => {
  driver = new PlainDriver()
  engine = createPlainEngine(driver)
  id = (await engine.create({ env: { FROM_SPEC: 'yes' } })).id
})

afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  expect(driver.openCells).toBe(0)
})

async function run(request: RunRequest): Promise<Collected> {
  return collect(await engine.start(id, request))
}

describe('outcomes', () => {
  test('an exit is told with its code, and what was printed and used', async () => {
    const { outcome, stdout, stderr, truncated, usage } = await run({ command: 'echo out; echo err >&2; exit 7' })
    expect({ outcome, stdout, stderr, truncated }).toEqual({ outcome: { kind: 'exited', code: 7 }, stdout: 'out\n', stderr: 'err\n', truncated: false })
    expect(usage.outputBytes).toBe(8)
    expect(usage.wallMs).toBeGreaterThan(0)
    expect(usage.memoryPeakBytes).toBeGreaterThan(100_000)
  })

  test('times are told to the microsecond', async () => {
    for (const command of [['sh', '-c', 'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done'], ['no-such-program']]) {
      const { wallMs, cpuUserMs, cpuSystemMs } = (await run({ command })).usage
      for (const time of [wallMs, cpuUserMs, cpuSystemMs]) expect(String(time)).toMatch(/^\d+(\.\d{1,3})?$/)
      expect(wallMs).toBeGreaterThan(0)
    }
  })

  test.each([
    ['TERM', 'SIGTERM'],
    ['KILL', 'SIGKILL'],
    ['40', 'SIG40'],
  ])('a death by signal %s is told as %s', async (signal, name) => {
    expect((await run({ command: `kill -${signal} $$; sleep 5` })).outcome).toEqual({ kind: 'signaled', signal: name })
  })

  test('a program that is not there is not-started with 127', async () => {
    const program = await engine.start(id, { command: ['no-such-program'] })
    expect(program.pid).toBe(0)
    expect((await collect(program)).outcome).toEqual({
      kind: 'not-started',
      code: 127,
      reason: 'no-such-program was not found, or the interpreter in its first line was not',
    })
    expect(await rejectionOf(program.write(new Uint8Array(1)))).toMatchObject({ code: 'conflict' })
    await program.kill()
  })

  test.each([['/etc/passwd'], ['/etc']])('%s, which cannot be executed, is not-started with 126', async (path) => {
    expect((await run({ command: [path] })).outcome).toMatchObject({ kind: 'not-started', code: 126, reason: `${path} is a folder or may not be executed` })
  })

  test('a file of no known format is not-started with 126', async () => {
    await run({ command: 'echo text >bare; chmod 755 bare' })
    expect((await run({ command: ['./bare'] })).outcome).toEqual({ kind: 'not-started', code: 126, reason: './bare is in no format that can be executed' })
  })

  test('a program that runs out of time is killed with all its descendants', async () => {
    const { marker, command } = markedSleep()
    const { outcome, stdout } = await run({ command: `setsid ${command} & echo before; ${command}`, timeout: 1000 })
    expect([outcome, stdout]).toEqual([{ kind: 'timed-out', by: 'wall', limitMs: 1000 }, 'before\n'])
    expect(isRunning(marker)).toBe(false)
  })

  test('a death by SIGKILL is out-of-memory exactly when the kernel killed a process of this run for want of memory', async () => {
    driver.counts = () => ({ hits: { memory: 1, processes: 0 } })
    const killed = await run({ command: 'kill -KILL $$' })
    expect([killed.outcome, killed.usage.hits]).toEqual([
      { kind: 'out-of-memory', limitBytes: 512 * 2 ** 20 },
      { memory: 1, processes: 0 },
    ])
    const survived = await run({ command: 'exit 3' })
    expect([survived.outcome, survived.usage.hits.memory]).toEqual([{ kind: 'exited', code: 3 }, 1])
    expect((await run({ command: 'kill -TERM $$' })).outcome).toEqual({ kind: 'signaled', signal: 'SIGTERM' })
    const program = await engine.start(id, { command: 'sleep 30' })
    await program.kill('enough')
    expect((await collect(program)).outcome).toEqual({ kind: 'killed', reason: 'enough' })
    driver.counts = () => ({ hits: { memory: 0, processes: 0 } })
    expect((await run({ command: 'kill -KILL $$' })).outcome).toEqual({ kind: 'signaled', signal: 'SIGKILL' })
  })

  test('a killed program is told with the reason, and its descendants are gone', async () => {
    const { marker, command } = markedSleep()
    const program = await engine.start(id, { command: `setsid ${command} & ${command}` })
    await waitUntil(() => isRunning(marker))
    await program.kill('no longer needed')
    expect(isRunning(marker)).toBe(false)
    expect((await collect(program)).outcome).toEqual({ kind: 'killed', reason: 'no longer needed' })
    await program.kill()
  })

  test('a run whose watcher was lost is never a success', async () => {
    const program = await engine.start(id, { command: 'echo up; sleep 30' })
    const ending = collect(program)
    const keeper = childrenOf(driver.cells[0]?.child.pid ?? 0)[0] ?? 0
    process.kill(keeper, 'SIGKILL')
    expect((await ending).outcome).toMatchObject({ kind: 'killed' })
  })
})

describe('output limits', () => {
  test('exactly as much as allowed is no excess', async () => {
    const { outcome, stdout, truncated } = await run({ command: 'printf 12345', output: { limit: 5 } })
    expect([outcome, stdout, truncated]).toEqual([{ kind: 'exited', code: 0 }, '12345', false])
  })

  test('one byte more is cut off, and the program killed', async () => {
    const { outcome, stdout, stderr, truncated, usage } = await run({ command: 'printf 123; printf 456 >&2; sleep 30', output: { limit: 5 } })
    expect([outcome, (stdout + stderr).length, truncated, usage.outputBytes]).toEqual([{ kind: 'output-limit', limitBytes: 5 }, 5, true, 6])
  })

  test('is the outcome even when the program ends before it is killed', async () => {
    expect((await run({ command: 'printf 123456', output: { limit: 5 } })).outcome).toEqual({ kind: 'output-limit', limitBytes: 5 })
  })

  test('truncating lets the program go on and counts what was dropped', async () => {
    const { outcome, stdout, truncated, usage } = await run({ command: 'head -c 3000000 /dev/zero; exit 4', output: { limit: 1000, onLimit: 'truncate' } })
    expect([outcome, stdout.length, truncated, usage.outputBytes]).toEqual([{ kind: 'exited', code: 4 }, 1000, true, 3_000_000])
  })

  test('of nothing allows nothing', async () => {
    expect((await run({ command: 'echo x', output: { limit: 0 } })).outcome).toEqual({ kind: 'output-limit', limitBytes: 0 })
    expect((await run({ command: 'true', output: { limit: 0 } })).outcome).toEqual({ kind: 'exited', code: 0 })
  })

  test('an endless printer is stopped with bounded memory', async () => {
    const before = process.memoryUsage().rss
    const { outcome, stdout } = await run({ command: ['yes'], output: {} })
    expect([outcome, stdout.length]).toEqual([{ kind: 'output-limit', limitBytes: 10 * 2 ** 20 }, 10 * 2 ** 20])
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 2 ** 20)
  })
})

describe('streams', () => {
  test('a reader that leaves early lets the program go on, and the end is still told', async () => {
    const program = await engine.start(id, { command: 'echo one; sleep 0.1; head -c 1000000 /dev/zero; exit 3' })
    for await (const _ of program.output) break
    const { outcome, usage } = await program.ended
    expect([outcome, usage.outputBytes]).toEqual([{ kind: 'exited', code: 3 }, 1_000_004])
  })

  test('the output has one consumer', async () => {
    const program = await engine.start(id, { command: 'true' })
    const iterating = collect(program)
    expect(() => program.output[Symbol.asyncIterator]()).toThrow('one consumer')
    await iterating
  })

  test('what is not read holds the program back instead of filling memory', async () => {
    const program = await engine.start(id, { command: 'head -c 20000000 /dev/zero; echo done >&2' })
    const isOver = await Promise.race([program.ended.then(() => true), new Promise((resolve) => setTimeout(resolve, 300, false))])
    expect(isOver).toBe(false)
    expect((await collect(program)).usage.outputBytes).toBe(20_000_005)
  })

  test('stdin is fed to its end, and empty unless it is asked for', async () => {
    const program = await engine.start(id, { command: ['cat'], stdin: true })
    const collecting = collect(program)
    await program.write(Buffer.from('hello '))
    await program.write(Buffer.from('there'))
    await program.endInput()
    expect((await collecting).stdout).toBe('hello there')
    expect((await run({ command: ['cat'] })).stdout).toBe('')
  })

  test('writing to a stdin that is closed is a conflict, and so is writing to one that has ended, which may be told that there is no more', async () => {
    const program = await engine.start(id, { command: 'read x; exit 0', stdin: true })
    const unfed = await engine.start(id, { command: 'sleep 30' })
    expect(await rejectionOf(unfed.write(new Uint8Array(1)))).toMatchObject({ code: 'conflict' })
    await unfed.kill()
    await program.write(Buffer.from('line\n'))
    await collect(program)
    expect(await rejectionOf(program.write(Buffer.from('more')))).toMatchObject({ code: 'conflict', message: 'stdin: the program has ended' })
    await program.endInput()
  })

  test('a signal reaches the program by name, and a name there is not is refused', async () => {
    const program = await engine.start(id, { command: 'trap "exit 5" USR1; echo up; while :; do sleep 0.02; done' })
    const iterator = program.output[Symbol.asyncIterator]()
    await iterator.next()
    await program.signal('SIGUSR1')
    expect(await rejectionOf(program.signal('SIGNOPE'))).toMatchObject({ code: 'invalid', message: "signal: there is no signal 'SIGNOPE'" })
    await iterator.return?.()
    expect((await program.ended).outcome).toEqual({ kind: 'exited', code: 5 })
    await program.signal('SIGUSR1')
  })
})

describe('surroundings', () => {
  test('the environment is exactly the fixed variables, the template’s, the spec’s and the run’s', async () => {
    const { stdout } = await run({ command: ['env'], env: { FROM_RUN: 'yes' } })
    const names = ['FROM_RUN=yes', 'FROM_SPEC=yes', 'FROM_TEMPLATE=yes', 'HOME=/home/user', 'LANG=C.UTF-8']
    const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    expect(stdout.trim().split('\n').sort()).toEqual([...names, path, 'TERM=dumb', 'USER=user'])
  })

  test('a run overrides its spec, and a spec the fixed variables', async () => {
    const { stdout } = await run({ command: 'echo $FROM_SPEC $HOME', env: { FROM_SPEC: 'no', HOME: '/tmp' } })
    expect(stdout).toBe('no /tmp\n')
  })

  test('a program starts in the workspace, or where it is told', async () => {
    expect((await run({ command: ['pwd'] })).stdout.trim()).toBe(driver.cells[0]?.workdir)
    expect((await run({ command: ['pwd'], cwd: '/usr' })).stdout).toBe('/usr\n')
  })

  test.each([
    ['/no/such/folder', 'cwd: /no/such/folder does not exist'],
    ['/etc/passwd', 'cwd: /etc/passwd is not a folder'],
  ])('a folder %s that cannot be entered is an error that names it', async (cwd, message) => {
    expect(await rejectionOf(engine.start(id, { command: ['true'], cwd }))).toMatchObject({ code: 'invalid', message })
  })

  test('no core is dumped and the number of files is bounded', async () => {
    expect((await run({ command: 'ulimit -c; ulimit -Sn; ulimit -Hn' })).stdout).toBe('0\n1024\n4096\n')
  })

  test('a user that is not available is refused with the reason', async () => {
    const error = await rejectionOf(engine.start(id, { command: ['true'], user: 'root' }))
    expect(error).toMatchObject({ code: 'unsupported', message: "user: 'root' is not available: there is one id here" })
  })
})

describe('abort', () => {
  test('before the start rejects with the reason, and nothing starts', async () => {
    const reason = new Error('never mind')
    expect(await rejectionOf(engine.start(id, { command: 'touch started' }, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect((await run({ command: ['ls'] })).stdout).toBe('')
  })

  test('while it starts rejects with the reason and leaves no process', async () => {
    const { marker, command } = markedSleep()
    const controller = new AbortController()
    const starting = engine.start(id, { command }, { signal: controller.signal })
    const reason = new Error('too late')
    setImmediate(() => controller.abort(reason))
    const error = await rejectionOf(starting.then((program) => program.ended))
    expect(error).toBe(reason)
    expect(isRunning(marker)).toBe(false)
  })

  test('during the run kills it with its descendants and rejects both its end and its output with the reason', async () => {
    const { marker, command } = markedSleep()
    const controller = new AbortController()
    const program = await engine.start(id, { command: `setsid ${command} & ${command}` }, { signal: controller.signal })
    const reading = rejectionOf(collect(program))
    await waitUntil(() => isRunning(marker))
    const reason = { any: 'thing' }
    controller.abort(reason)
    expect(await rejectionOf(program.ended)).toBe(reason)
    expect(await reading).toBe(reason)
    expect(isRunning(marker)).toBe(false)
    expect((await run({ command: ['true'] })).outcome).toEqual({ kind: 'exited', code: 0 })
  })

  test('after the end changes nothing', async () => {
    const controller = new AbortController()
    const program = await engine.start(id, { command: ['true'] }, { signal: controller.signal })
    await collect(program)
    controller.abort()
    expect((await program.ended).outcome).toEqual({ kind: 'exited', code: 0 })
  })
})

test('twenty runs at once each get their own ending and output', async () => {
  const results = await Promise.all(Array.from({ length: 20 }, (_, index) => run({ command: `sleep 0.0$((${index} % 5)); echo ${index}; exit ${index}` })))
  expect(results.map(({ outcome, stdout }) => ({ outcome, stdout }))).toEqual(
    Array.from({ length: 20 }, (_, code) => ({ outcome: { kind: 'exited', code }, stdout: `${code}\n` })),
  )
})

test('more programs at once than allowed are busy, and room comes back when one ends', async () => {
  const bounded = createPlainEngine(driver, { bounds: { maxRuns: 1 } })
  const { id: only } = await bounded.create({})
  const first = await bounded.start(only, { command: ['cat'], stdin: true })
  const error = await rejectionOf(bounded.start(only, { command: ['true'] }))
  expect(error).toBeInstanceOf(SandboxError)
  expect(error).toMatchObject({ code: 'busy', retryable: true })
  await first.endInput()
  await collect(first)
  expect((await collect(await bounded.start(only, { command: ['true'] }))).outcome).toEqual({ kind: 'exited', code: 0 })
  await bounded[Symbol.asyncDispose]()
})
