import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Probe } from '../../src/contract/driver.js'
import type { Platform } from '../../src/contract/platform.js'
import { verifyReceipt } from '../../src/receipt/index.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { rejectionOf } from './collect.js'

const MiB = 2 ** 20
const python = (script: string): string[] => ['/usr/bin/python3', '-I', '-S', '-c', script]
const hold = (bytes: number): string => `block = bytearray(b'x') * ${bytes}`

let platform: Platform
let probe: Probe

beforeAll(async () => {
  platform = createPlatform()
  const found = (await platform.probe()).find(({ driver }) => driver === 'bwrap')
  if (!found?.available) throw new Error(`bwrap is not available here: ${JSON.stringify(found?.obstacles)}`)
  probe = found
})

afterAll(() => platform[Symbol.asyncDispose]())

/** Why one of these limits cannot be held here; undefined when all can. */
function lackOf(...names: (keyof Probe['limits'])[]): string | undefined {
  return names.flatMap((name) => (probe.limits[name].enforced ? [] : [`no ${name} limit here: ${probe.limits[name].why}`]))[0]
}

describe('the usage of a cell', () => {
  test('tells what is on its disk, wherever in it that was written', async () => {
    await using sandbox = await Sandbox.create({ platform })
    const { diskBytes: before } = await sandbox.usage()
    await sandbox.run('head -c 3000000 /dev/zero > file; head -c 2000000 /dev/zero > /tmp/file')
    const { diskBytes: after } = await sandbox.usage()
    expect((after ?? 0) - (before ?? 0)).toBeGreaterThanOrEqual(5_000_000)
    expect((after ?? 0) - (before ?? 0)).toBeLessThan(6_000_000)
    await sandbox.run('rm file /tmp/file')
    expect((await sandbox.usage()).diskBytes).toBe(before)
  })
})

describe('a fork bomb compiled from C', () => {
  test('stays within its processes, ends with its time, leaves none, and a neighbour answers within a second all the while', async ({ skip }) => {
    const lack = lackOf('processes')
    if (lack !== undefined) skip(lack)
    const folder = mkdtempSync(join(tmpdir(), 'glovebox-bomb-'))
    try {
      const file = join(folder, 'bomb')
      execFileSync('gcc', ['-static', '-O2', '-o', file, join(import.meta.dirname, '../sys/programs/fork-bomb.c')])
      await using neighbour = await Sandbox.create({ platform })
      await using sandbox = await Sandbox.create({ platform, limits: { processes: 32 } })
      await sandbox.run('cat > bomb && chmod +x bomb', { stdin: readFileSync(file) })
      const exploding = sandbox.run(['./bomb'], { timeout: '3s' })
      const waits: number[] = []
      for (let asked = performance.now(), end = asked + 2500; asked < end; asked = performance.now()) {
        expect((await neighbour.run(['true'])).outcome).toEqual({ kind: 'exited', code: 0 })
        waits.push(performance.now() - asked)
      }
      const { outcome, usage } = await exploding
      expect(outcome).toEqual({ kind: 'timed-out', by: 'wall', limitMs: 3000 })
      expect(Math.max(...waits)).toBeLessThan(1000)
      expect(usage.processesPeak ?? 0).toBeLessThanOrEqual(32)
      if (probe.limits.cpuTime.enforced) expect(usage.hits.processes).toBeGreaterThan(0)
      expect((await sandbox.run('for i in 1 2 3 4 5 6 7 8; do sleep 0.1 & done; wait')).outcome).toEqual({ kind: 'exited', code: 0 })
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe('the end of a run in a cell', () => {
  test('is out-of-memory only when the kernel killed its program for want of memory', async ({ skip }) => {
    const lack = lackOf('memory')
    if (lack !== undefined) skip(lack)
    await using sandbox = await Sandbox.create({ platform, limits: { memory: '64m', disk: '1m' } })
    const own = await sandbox.run('kill -KILL $$')
    expect([own.outcome, own.usage.hits.memory]).toEqual([{ kind: 'signaled', signal: 'SIGKILL' }, 0])
    const greedy = await sandbox.run(python(hold(128 * MiB)))
    expect([greedy.outcome, greedy.usage.hits.memory]).toEqual([{ kind: 'out-of-memory', limitBytes: 64 * MiB }, 1])
    const again = await sandbox.run('kill -KILL $$')
    expect([again.outcome, again.usage.hits.memory]).toEqual([{ kind: 'signaled', signal: 'SIGKILL' }, 0])
  })

  test('is the program’s own when only a child of its was killed for want of memory, and the kill is told', async ({ skip }) => {
    const lack = lackOf('memory')
    if (lack !== undefined) skip(lack)
    await using sandbox = await Sandbox.create({ platform, limits: { memory: '64m', disk: '1m' } })
    const script = `import os\nif os.fork() == 0:\n  ${hold(128 * MiB)}\n  os._exit(0)\nprint(os.wait()[1], flush=True)\nos._exit(7)`
    const { outcome, stdout, usage } = await sandbox.run(python(script))
    expect([outcome, stdout, usage.hits.memory]).toEqual([{ kind: 'exited', code: 7 }, '9\n', 1])
  })

  test('is timed-out by cpu when all its processes together used their time, and none is left', async ({ skip }) => {
    const lack = lackOf('cpuTime')
    if (lack !== undefined) skip(lack)
    await using sandbox = await Sandbox.create({ platform, limits: { cpuTime: '300ms', time: '20s' } })
    const { outcome, usage } = await sandbox.run(python('import os\nos.fork(); os.fork()\nwhile True: pass'))
    expect(outcome).toEqual({ kind: 'timed-out', by: 'cpu', limitMs: 300 })
    expect(usage.cpuUserMs + usage.cpuSystemMs).toBeGreaterThanOrEqual(300)
    const names = (await sandbox.run('cat /proc/[0-9]*/comm')).stdout
    expect(names).toContain('cat\n')
    expect(names).not.toContain('python')
    expect((await sandbox.run('sleep 0.5; exit 2')).outcome).toEqual({ kind: 'exited', code: 2 })
  })
})

describe('a live cell', () => {
  test('has the new limits by what the kernel says, and its receipt says so', async ({ skip }) => {
    const lack = lackOf('memory', 'processes')
    if (lack !== undefined) skip(lack)
    await using sandbox = await Sandbox.create({ platform, limits: { memory: '64m', processes: 32, disk: '1m' } })
    expect((await sandbox.run(python(hold(96 * MiB)))).outcome.kind).toBe('out-of-memory')
    await sandbox.limit({ memory: '192m', processes: 16 })
    expect((await sandbox.run(python(hold(96 * MiB)))).outcome).toEqual({ kind: 'exited', code: 0 })
    const { controls } = await sandbox.receipt()
    const told = controls.filter(({ control }) => ['limit.memory', 'limit.processes'].includes(control))
    expect(told.map(({ control, requested, enforced, verdict }) => ({ control, requested, enforced, verdict }))).toEqual([
      { control: 'limit.memory', requested: 192 * MiB, enforced: 192 * MiB, verdict: 'proven' },
      { control: 'limit.processes', requested: 16, enforced: 16, verdict: 'proven' },
    ])
  })

  test('whose change is refused keeps every limit', async () => {
    await using sandbox = await Sandbox.create({ platform })
    const before = await sandbox.info()
    expect(await rejectionOf(sandbox.limit({ time: '1s', cpus: -1 }))).toMatchObject({ code: 'invalid' })
    expect(await sandbox.info()).toEqual(before)
  })
})

describe('the receipt of a cell', () => {
  test('is signed, and every control in it is as demanded', async () => {
    await using sandbox = await Sandbox.create({ platform, limits: { fileSize: '3m', openFiles: 99 } })
    expect((await sandbox.run('ulimit -Hn')).stdout).toBe('99\n')
    const receipt = await sandbox.receipt()
    expect(verifyReceipt(receipt)).toMatchObject({ valid: true })
    expect(verifyReceipt({ ...receipt, template: 'other' })).toMatchObject({ valid: false })
    const found = Object.fromEntries(receipt.controls.map(({ control, enforced, verdict }) => [control, { enforced, verdict }]))
    expect(found['no-new-privs']).toEqual({ enforced: true, verdict: 'proven' })
    expect(found['limit.fileSize']).toEqual({ enforced: 3 * MiB, verdict: 'proven' })
    expect(found['limit.openFiles']).toEqual({ enforced: 99, verdict: 'proven' })
    expect(found.interfaces).toEqual({ enforced: ['lo'], verdict: 'proven' })
    expect(receipt.runs).toMatchObject([{ number: 1, posture: 'full', environment: ['HOME', 'LANG', 'PATH', 'TERM', 'USER'] }])
  })

  test('does not prove a limit that an older program is not held to', async () => {
    await using sandbox = await Sandbox.create({ platform })
    const told = async () => (await sandbox.receipt()).controls.find(({ control }) => control === 'limit.openFiles')
    const older = await sandbox.spawn('echo up; read line')
    for await (const _ of older.stdout) break
    await sandbox.limit({ openFiles: 64 })
    expect((await sandbox.run('ulimit -Sn; ulimit -Hn')).stdout).toBe('64\n64\n')
    const why = 'a process that was started before it was lowered still has up to 4096'
    expect(await told()).toMatchObject({ requested: 64, stated: 'spec', enforced: 4096, verdict: 'asserted', why })
    expect((await sandbox.run('ulimit -Sn; ulimit -Hn', { limits: { openFiles: 16 } })).stdout).toBe('16\n16\n')
    await older.kill()
    expect((await sandbox.run('true')).exitCode).toBe(0)
    expect(await told()).toMatchObject({ requested: 64, enforced: 64, verdict: 'proven' })
  })

  test('tells of open files that were stated that a program has them at once', async () => {
    await using sandbox = await Sandbox.create({ platform, limits: { openFiles: 2000 } })
    expect((await sandbox.run('ulimit -Sn; ulimit -Hn')).stdout).toBe('2000\n2000\n')
    const told = (await sandbox.receipt()).controls.find(({ control }) => control === 'limit.openFiles')
    expect(told).toMatchObject({ requested: 2000, stated: 'spec', enforced: 2000, verdict: 'proven' })
  })

  test('names the policies that hold, and what they lowered', async () => {
    const ceiling = { limits: { time: '5s', openFiles: 2000 } } as const
    await using sandbox = await Sandbox.create({ platform, limits: { time: '1m' }, policy: { name: 'small', ceiling, onExceed: 'clamp' } })
    expect((await sandbox.run('ulimit -Sn; ulimit -Hn')).stdout).toBe('1024\n2000\n')
    const { policies, clamped, controls } = await sandbox.receipt()
    expect(policies).toMatchObject([{ name: 'small', onExceed: 'clamp' }])
    expect(clamped).toEqual([{ field: 'limits.time', asked: 60_000, given: 5000, by: 'small' }])
    const stated = Object.fromEntries(controls.map((each) => [each.control, each.stated]))
    expect(stated).toMatchObject({ 'limit.time': 'policy', 'limit.openFiles': 'policy', 'limit.memory': 'default' })
  })

  // The first list on a machine looks through the whole template.
  test('tells of a list of commands that it was tried', { timeout: 600_000 }, async ({ skip }) => {
    const { commands } = probe.features
    if (!commands.available) skip(commands.why)
    await using sandbox = await Sandbox.create({ platform, commands: ['sh', 'echo'] })
    expect((await sandbox.run(['sh', '-c', 'echo listed; ls / 2>/dev/null || echo refused'])).stdout).toBe('listed\nrefused\n')
    const told = (await sandbox.receipt()).controls.find(({ control }) => control === 'commands')
    expect(told).toMatchObject({ requested: ['sh', 'echo'], stated: 'spec', evidence: 'probe', verdict: 'proven' })
    expect(told?.source).toMatch(/^tried to execute \/\S+: EACCES$/)
  })
})

test('the environment of a cell has nothing of the host’s', async () => {
  await using sandbox = await Sandbox.create({ platform, env: { GIVEN: 'yes' } })
  const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
  const { stdout } = await sandbox.run(['env'])
  expect(stdout.trim().split('\n').sort()).toEqual(['GIVEN=yes', 'HOME=/home/user', 'LANG=C.UTF-8', path, 'TERM=dumb', 'USER=user'])
})
