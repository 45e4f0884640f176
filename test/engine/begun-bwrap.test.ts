// Pools of cells in which a Python waits, begun before anyone asked.
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { Platform } from '../../src/contract/platform.js'
import { Sandbox, SandboxPool } from '../../src/sandbox/index.js'
import { descendantsOf } from '../../src/sys/posture/process-tree.js'
import { pythonPrograms, unplaced } from './python-programs.js'

const python = '/usr/bin/python3'

let platform: Platform
let pool: SandboxPool

beforeAll(async () => {
  platform = createPlatform()
  pool = await open()
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

/** The interpreters that wait in cells of this process's. */
function waiting(): number[] {
  return descendantsOf(process.pid).filter((pid) => wordsOf(pid)[0]?.includes('python') === true)
}

function wordsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')
  } catch {
    return []
  }
}

interface Shot {
  readonly said: object
  /** By its receipt. */
  readonly isBegun: boolean
}

/** One whose interpreter could have been begun: as many wait as ever do. */
async function shoot(command: string | string[], options: object = {}, of = pool): Promise<Shot> {
  await full(of)
  const { outcome, stdout, stderr, receipt } = await of.run(command, { receipt: true, ...options })
  return { said: { outcome, stdout, stderr }, isBegun: receipt?.runs[0]?.begunAhead === true }
}

/** One that was made when it was asked for. */
async function fresh(command: string | string[], options: object = {}): Promise<object> {
  const { outcome, stdout, stderr } = await Sandbox.run(command, { sandbox: {}, platform, pool: false, fresh: 'cell', ...options })
  return { outcome, stdout, stderr }
}

describe('an interpreter that was begun ahead does what a python3 does that was just started', () => {
  test.for(Object.entries(pythonPrograms))('%s', async ([, code]) => {
    const command = [python, '-c', code, 'a b', 'é']
    const { said, isBegun } = await shoot(command)
    expect(isBegun).toBe(true)
    expect(unplaced(said)).toBe(unplaced(await fresh(command)))
  })

  const more: Record<string, string> = {
    'the modules that are there': 'import sys; print(sorted(sys.modules))',
    'what C printed': 'import ctypes; ctypes.CDLL(None).printf(b"of C\\n")',
    'stdout that is closed': 'import sys; print("a"); sys.stdout.close()',
    'stdout that was closed below': 'import os; print("a"); os.close(1)',
    'a finalizer of a module': 'import sys, types\nm = types.ModuleType("m"); sys.modules["m"] = m\nclass A:\n  def __del__(self): print("gone")\nm.a = A()',
    'an interrupt that is handled': 'import os\ntry:\n  os.kill(os.getpid(), 2); import time; time.sleep(5)\nexcept KeyboardInterrupt: print("caught")',
    'an interrupt, and what is done at exit': 'import atexit, os; atexit.register(print, "bye"); os.kill(os.getpid(), 2); import time; time.sleep(5)',
    'a daemon thread': 'import threading, time; threading.Thread(target=time.sleep, args=(30,), daemon=True).start(); print("main")',
    'input that is not there': 'import sys, os; print(repr(sys.stdin.read()), os.readlink("/proc/self/fd/0"))',
    'an exec': 'import os; os.execv("/bin/sh", ["sh", "-c", "echo $0; ls /proc/self/fd; exit 4"])',
    'a fork': 'import os\npid = os.fork()\nif pid == 0: os._exit(7)\nprint(os.waitpid(pid, 0)[1] >> 8)',
    'what the kernel says of it':
      'import os, re\nstatus = open("/proc/self/status").read()\nprint(re.findall("(?m)^(?:Umask|Uid|Gid|Groups|Sig[BIC]|Shd|Cap|NoNewPrivs|Seccomp).*", status))\nprint(open("/proc/self/limits").read(), sorted(os.listdir("/proc/self/fd")), os.getpid() == os.getpgrp() == os.getsid(0), os.getpriority(0, 0), open("/proc/self/oom_score_adj").read(), os.readlink("/proc/self/exe"), open("/proc/self/environ").read())',
  }
  test.for(Object.entries(more))('%s', async ([, code]) => {
    const { said, isBegun } = await shoot([python, '-c', code])
    expect(isBegun).toBe(true)
    expect(unplaced(said)).toBe(unplaced(await fresh([python, '-c', code])))
  })

  test('with a file of the template', async () => {
    const { stdout } = await Sandbox.run([python, '-c', 'import os; print(os.path.dirname(os.__file__))'], { platform })
    const command = [python, `${stdout.trim()}/this.py`, 'x']
    const { said, isBegun } = await shoot(command)
    expect(isBegun).toBe(true)
    expect(said).toEqual(await fresh(command))
  })

  test('in its folder, with its variables', async () => {
    const code = 'import os; print(os.getcwd(), os.environ["A"], os.environ.get("TZ"), __import__("time").tzname[0])'
    const options = { cwd: '/tmp', env: { A: 'é', TZ: 'UTC+3' } }
    const { said, isBegun } = await shoot([python, '-c', code], options)
    expect(isBegun).toBe(true)
    expect(said).toEqual(await fresh([python, '-c', code], options))
  })

  test('with chance and hashes of its own', async () => {
    const code = 'import random; print(hash("a"), random.random(), hex(id(object)))'
    const [one, other] = [await shoot([python, '-c', code]), await shoot([python, '-c', code])]
    expect(one.said).not.toEqual(other.said)
    expect([one.isBegun, other.isBegun]).toEqual([true, true])
  })

  test('with nothing of the loader in its namespace, and neither end of what it was told by', async () => {
    const { said } = await shoot([python, '-c', 'import os; print(sorted(vars()), [fd for fd in range(3, 64) if os.path.exists(f"/proc/self/fd/{fd}")][1:])'])
    expect(said).toMatchObject({ stdout: "['__annotations__', '__builtins__', '__doc__', '__loader__', '__name__', '__package__', '__spec__', 'os'] []\n" })
  })
})

describe('anything else is started as ever', () => {
  const others: Record<string, readonly [command: string | string[], options?: object]> = {
    'an option': [[python, '-I', '-c', 'import sys; print(sys.flags.isolated)']],
    'a module': [[python, '-m', 'this']],
    unbuffered: [[python, '-u', '-c', 'print(1)']],
    'a variable that is read at start': [[python, '-c', 'import sys; print(sys.flags.dont_write_bytecode)'], { env: { PYTHONDONTWRITEBYTECODE: '1' } }],
    'another home': [[python, '-c', 'import site; print(site.getuserbase())'], { env: { HOME: '/tmp' } }],
    'another path to it': [['python3', '-c', 'import sys; print(sys.executable)'], { env: { PATH: '/bin' } }],
    'a shell': ['echo $((6 * 7)); cat /proc/[0-9]*/comm | grep python; exit 3'],
    'limits of its own': [[python, '-c', 'import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))'], { limits: { openFiles: 200 } }],
    'a folder that is not there': [[python, '-c', 'print(1)'], { cwd: '/workspace/none' }],
  }
  test.for(Object.entries(others))('%s', async ([, [command, options]]) => {
    await shoot([python, '-c', 'pass'])
    await full(pool)
    expect(waiting()).toHaveLength(1)
    const refused = (error: unknown): Shot => ({ said: { refused: String(error) }, isBegun: false })
    const ours = await shoot(command, options).catch(refused)
    expect(ours.isBegun).toBe(false)
    expect(unplaced(ours.said)).toBe(unplaced(await fresh(command, options).catch((error: unknown) => refused(error).said)))
  })

  test('input', async () => {
    const { said, isBegun } = await shoot([python, '-c', 'import sys; print(sys.stdin.read().upper())'], { stdin: 'hello' })
    expect([said, isBegun]).toEqual([{ outcome: { kind: 'exited', code: 0 }, stdout: 'HELLO\n', stderr: '' }, false])
  })

  test('what is lasting: a sandbox that is handed out has no interpreter in it', async () => {
    await shoot([python, '-c', 'pass'])
    await full(pool)
    const [pid] = waiting()
    await using sandbox = await pool.acquire()
    expect(waiting()).not.toContain(pid)
    expect((await sandbox.run('cat /proc/[0-9]*/comm')).stdout).not.toContain('python')
    const receipt = await sandbox.receipt()
    expect(receipt.runs.map(({ begunAhead }) => begunAhead)).toEqual([undefined])
  })
})
