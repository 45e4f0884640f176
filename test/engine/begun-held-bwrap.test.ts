// What holds of a run whose interpreter was begun ahead: its limits, its accounts, its receipt, and what becomes of interpreters that nobody uses.
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Probe } from '../../src/contract/driver.js'
import type { Platform } from '../../src/contract/platform.js'
import { verifyReceipt } from '../../src/receipt/index.js'
import { Sandbox, SandboxPool } from '../../src/sandbox/index.js'
import { descendantsOf } from '../../src/sys/posture/process-tree.js'
import { rejectionOf } from './collect.js'
import { waitUntil } from './processes.js'

const python = '/usr/bin/python3'
const MiB = 2 ** 20

let platform: Platform
let probe: Probe

beforeAll(async () => {
  platform = createPlatform()
  const found = (await platform.probe()).find(({ driver }) => driver === 'bwrap')
  if (!found?.available) throw new Error(`bwrap is not available here: ${JSON.stringify(found?.obstacles)}`)
  probe = found
})
afterAll(() => platform[Symbol.asyncDispose]())

async function open(options: object = {}): Promise<SandboxPool> {
  const opened = await SandboxPool.create({ platform, size: 1, max: 4, ...options })
  await opened.run([python, '-c', 'pass'])
  await full(opened)
  return opened
}

async function full(of: SandboxPool): Promise<void> {
  for (let status = await of.status(); status.available < of.size || status.total > status.available; status = await of.status()) await sleep(5)
}

function waiting(): number[] {
  return descendantsOf(process.pid).filter((pid) => commandOf(pid).includes('python'))
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')[0] ?? ''
  } catch {
    return ''
  }
}

describe('a run whose interpreter was begun ahead', () => {
  test('is held to its time, which counts from its hand-over', async () => {
    await using pool = await open({ limits: { time: '1s' } })
    await sleep(1200)
    const { outcome, usage, receipt } = await pool.run([python, '-c', 'while True: pass'], { timeout: '300ms', receipt: true })
    expect(outcome).toEqual({ kind: 'timed-out', by: 'wall', limitMs: 300 })
    expect(usage.wallMs).toBeGreaterThanOrEqual(290)
    expect(usage.wallMs).toBeLessThan(1100)
    expect(receipt?.runs[0]?.begunAhead).toBe(true)
  })

  test('is held to the memory, the output and the processor time of its sandbox', async ({ skip }) => {
    const { memory, cpuTime } = probe.limits
    if (!memory.enforced) skip(memory.why)
    if (!cpuTime.enforced) skip(cpuTime.why)
    await using pool = await open({ limits: { memory: '64m', output: '1m', cpuTime: '400ms' } })
    const shot = async (code: string) => {
      await full(pool)
      const { outcome, receipt } = await pool.run([python, '-c', code], { receipt: true })
      expect(receipt?.runs[0]?.begunAhead).toBe(true)
      return outcome
    }
    expect(await shot(`x = bytearray(b"x") * ${256 * MiB}`)).toEqual({ kind: 'out-of-memory', limitBytes: 64 * MiB })
    expect(await shot('while True: print("x" * 1000)')).toEqual({ kind: 'output-limit', limitBytes: MiB })
    expect(await shot('while True: pass')).toEqual({ kind: 'timed-out', by: 'cpu', limitMs: 400 })
  })

  test('is not charged with the start of its interpreter', async () => {
    await using pool = await open()
    const least = { begun: Infinity, fresh: Infinity }
    for (let n = 0; n < 4; n += 1) {
      await full(pool)
      const begun = (await pool.run([python, '-c', 'pass'])).usage
      const fresh = (await Sandbox.run([python, '-c', 'pass'], { platform, fresh: 'cell', pool: false })).usage
      least.begun = Math.min(least.begun, begun.cpuUserMs + begun.cpuSystemMs)
      least.fresh = Math.min(least.fresh, fresh.cpuUserMs + fresh.cpuSystemMs)
    }
    expect(least.begun).toBeLessThan(least.fresh * 0.7)
  })

  test('is told of by its receipt as what it is', async () => {
    await using pool = await open()
    const { receipt } = await pool.run([python, '-c', 'pass'], { receipt: true })
    if (!receipt) throw new Error('there is no receipt')
    expect(verifyReceipt(receipt)).toMatchObject({ valid: true })
    expect([receipt.fresh, receipt.pooled]).toEqual(['cell', true])
    expect(receipt.runs).toMatchObject([{ number: 1, posture: 'full', begunAhead: true, outcome: { kind: 'exited', code: 0 } }])
    const verdicts = (of: typeof receipt) => of.controls.filter(({ subject }) => subject === 'run 1').map(({ control, verdict }) => `${control} ${verdict}`)
    const fresh = (await Sandbox.run([python, '-c', 'pass'], { platform, fresh: 'cell', pool: false, receipt: true })).receipt
    expect(verdicts(receipt)).toEqual(fresh && verdicts(fresh))
    expect(verdicts(receipt)).toContain('descriptors proven')
    expect(receipt.controls.find(({ control }) => control === 'descriptors')?.enforced).toEqual([0, 1, 2, 3, 4])
    expect(receipt.controls.find(({ control }) => control === 'environment')?.enforced).toEqual(['HOME', 'LANG', 'PATH', 'TERM', 'USER'])
  })

  test('ends when it is called off, and the pool goes on', async () => {
    await using pool = await open()
    const calledOff = new AbortController()
    const run = pool.run([python, '-c', 'print(1, flush=True); import time; time.sleep(30)'], { signal: calledOff.signal })
    await sleep(100)
    calledOff.abort(new Error('enough'))
    expect(await rejectionOf(run)).toMatchObject({ message: 'enough' })
    await full(pool)
    expect((await pool.run([python, '-c', 'print(2)'])).stdout).toBe('2\n')
  })

  test('gets signals', async () => {
    await using pool = await open()
    const code = 'import time\ntry:\n  print("on", flush=True); time.sleep(30)\nexcept KeyboardInterrupt:\n  print("interrupted"); raise SystemExit(5)'
    const { program, release } = await platform.pools.run({ pool: pool.id }, { command: [python, '-c', code] })
    let said = ''
    for await (const { bytes } of program.output) {
      said += Buffer.from(bytes).toString()
      if (said === 'on\n') await program.signal('SIGINT')
    }
    expect([said, (await program.ended).outcome]).toEqual(['on\ninterrupted\n', { kind: 'exited', code: 5 }])
    await release()
  })

  test('cannot do what no program can', async () => {
    await using pool = await open()
    const code = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, *arguments):
    result = getattr(libc, name)(*arguments)
    return name, result, os.strerror(ctypes.get_errno()) if result < 0 else ""
print(tried("unshare", 0x10000000), tried("ptrace", 16, 1, 0, 0), tried("kill", 1, 9), tried("mount", 0, b"/tmp", 0, 4096, 0), tried("setuid", 0))
for path in ("/usr/planted", "/etc/planted", "/proc/sys/kernel/core_pattern"):
    try: open(path, "w"); print("opened", path)
    except OSError: pass
for path in (f"/proc/{os.getppid()}/mem", f"/proc/{os.getppid()}/environ", "/proc/1/mem"):
    try: open(path, "rb"); print("opened", path)
    except OSError: pass
`
    const { stdout, stderr, receipt } = await pool.run([python, '-c', code], { receipt: true })
    expect([receipt?.runs[0]?.begunAhead, stderr]).toEqual([true, ''])
    expect(stdout).not.toContain('opened')
    expect(stdout).toMatch(/'unshare', -1.*'ptrace', -1.*'mount', -1.*'setuid', -1/)
    expect(stdout).toBe((await Sandbox.run([python, '-c', code], { platform, fresh: 'cell', pool: false })).stdout)
  })
})

describe('an interpreter that nobody uses', () => {
  test('is begun only once Python was run', async () => {
    await using pool = await SandboxPool.create({ platform, size: 1, max: 4 })
    await full(pool)
    await pool.run(['true'])
    await full(pool)
    expect(waiting()).toEqual([])
    await pool.run([python, '-c', 'pass'])
    await full(pool)
    expect(waiting()).toHaveLength(1)
    await pool.run(['true'])
    await full(pool)
    expect(waiting()).toEqual([])
  })

  test('ends with its pool', async () => {
    const pool = await open()
    expect(waiting()).toHaveLength(1)
    await pool.close()
    expect(waiting()).toEqual([])
  })

  test('that died while it waited is missed by nobody', async () => {
    await using pool = await open()
    const [pid] = waiting()
    if (pid === undefined) throw new Error('none waits')
    process.kill(pid, 'SIGKILL')
    await waitUntil(() => waiting().length === 0)
    const { stdout, outcome, receipt } = await pool.run([python, '-c', 'print(3)'], { receipt: true })
    expect([stdout, outcome, receipt?.runs.map(({ begunAhead }) => begunAhead)]).toEqual(['3\n', { kind: 'exited', code: 0 }, [undefined]])
  })

  test('is of a program that cannot be one is not tried again, and whoever names it is told as ever', async () => {
    await using pool = await SandboxPool.create({ platform, size: 1, max: 4 })
    for (let n = 0; n < 3; n += 1) {
      expect((await pool.run(['/usr/none/python3', '-c', 'print(3)'])).outcome).toMatchObject({ kind: 'not-started', code: 127 })
      await full(pool)
    }
    expect((await pool.status()).failure).toBeUndefined()
    expect((await pool.run('echo fine')).stdout).toBe('fine\n')
  })

  test('of one-shots has nothing of those before: their variables are told when it is handed out', async () => {
    const shot = (env: Record<string, string>, code: string) =>
      Sandbox.run([python, '-c', code], { platform, fresh: 'cell', receipt: true, sandbox: { env, metadata: { kind: 'begun' } } })
    const code = 'import os; print(sorted(os.environ), "of-another" in open("/proc/self/environ").read())'
    const seen: unknown[] = []
    for (let n = 0; n < 6; n += 1) {
      await shot({ SECRET: 'of-another' }, 'pass')
      await sleep(150)
      const { stdout, receipt } = await shot({ OWN: 'mine' }, code)
      expect(stdout).toBe("['HOME', 'LANG', 'OWN', 'PATH', 'TERM', 'USER'] False\n")
      seen.push(receipt?.runs[0]?.begunAhead)
      await sleep(150)
    }
    expect(seen).toContain(true)
    await platform.closeAll()
  })
})

describe('imports', () => {
  test('are there in every run, also in the first', async () => {
    await using pool = await SandboxPool.create({ platform, size: 1, max: 4, imports: ['json', 'threading'] })
    for (let n = 0; n < 2; n += 1) {
      await full(pool)
      const { stdout, receipt } = await pool.run(['python3', '-c', 'import sys; print("json" in sys.modules)'], { receipt: true })
      expect([stdout, receipt?.runs[0]?.begunAhead]).toEqual(['True\n', true])
    }
    await full(pool)
    expect((await pool.run('echo other')).stdout).toBe('other\n')
  })

  test('that cannot be had are refused', async () => {
    const error = await rejectionOf(SandboxPool.create({ platform, size: 1, imports: ['no_such_module'] }))
    expect(error).toMatchObject({ code: 'invalid', message: expect.stringMatching(/^imports: .*no_such_module/) as string })
    const few = await rejectionOf(SandboxPool.create({ platform, size: 1, imports: ['json'], limits: { processes: 8 } }))
    expect(few).toMatchObject({ code: 'unsupported', message: expect.stringMatching(/^imports: .*32 processes/) as string })
    expect(waiting()).toEqual([])
  })
})
