import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { descendantsOf } from '../../src/sys/posture/process-tree.js'
import { testUnless } from '../unless.js'
import { isRoot } from '../warden/cells.js'
import { type LinedSandbox, openLined } from './lined.js'
import { waitUntil } from './processes.js'

const python = '/usr/bin/python3'
const sleepForLong = [python, '-c', 'import time; time.sleep(100)']

let lined: LinedSandbox
beforeAll(async () => {
  lined = await openLined({ limits: { cpus: 2 } })
  await lined.sandbox.ensureZygote({ language: 'python', imports: ['hashlib', 'ssl', 'json'] })
})
afterAll(() => lined[Symbol.asyncDispose]())

const py = (code: string) => lined.run([python, '-c', code])

function statusOf(pid: number): Record<string, string> {
  const rows = readFileSync(`/proc/${pid}/status`, 'utf8').split('\n')
  return Object.fromEntries(rows.map((row) => row.split(/:\s*/, 2) as [string, string]))
}

function called(name: string): number[] {
  return descendantsOf(process.pid).filter((pid) => {
    try {
      return statusOf(pid).Name === name
    } catch {
      return false
    }
  })
}

describe('the keeper of a fork', () => {
  testUnless(isRoot ? false : 'only root looks into what is undumpable')('has nothing of the zygote: no memory, no capability, one descriptor', async () => {
    const program = await lined.sandbox.startLined({ command: sleepForLong }, undefined)
    try {
      await waitUntil(() => called('python3').length === 1)
      const keeper = Number(statusOf(called('python3')[0] as number).PPid)
      const status = statusOf(keeper)
      expect(status).toMatchObject({
        Name: 'keeper',
        CapEff: '0000000000000000',
        CapPrm: '0000000000000000',
        CapInh: '0000000000000000',
        NoNewPrivs: '1',
        Seccomp: '2',
      })
      expect(Number.parseInt(status.VmPeak as string, 10)).toBeLessThan(1024)
      await waitUntil(() => readdirSync(`/proc/${keeper}/fd`).length === 1)
      expect(readFileSync(`/proc/${keeper}/cmdline`, 'utf8')).toMatch(/^keeper\0/)
      expect(readFileSync(`/proc/${keeper}/environ`, 'utf8')).toBe('')
    } finally {
      await program.kill('seen')
    }
  })

  test('cannot be looked into from its liner, nor ended', async () => {
    const code = `
import os
def told(act):
    try: return act()
    except OSError as error: return type(error).__name__
print([told(lambda: open("/proc/1/" + name, "rb").read(1)) for name in ("mem", "maps", "environ", "auxv", "stack")], told(lambda: os.listdir("/proc/1/fd")), told(lambda: os.readlink("/proc/1/exe")))
print(told(lambda: os.kill(1, 9)), told(lambda: os.kill(1, 19)), open("/proc/1/comm").read().strip(), os.getppid())`
    expect(await py(code)).toMatchObject({
      out: "['PermissionError', 'PermissionError', 'PermissionError', 'PermissionError', 'PermissionError'] PermissionError PermissionError\nNone None keeper 1\n",
      err: '',
      code: 0,
    })
  })

  test('tells how its program ended, with what it used', async () => {
    expect((await py('import os; os._exit(7)')).outcome).toEqual({ kind: 'exited', code: 7 })
    expect((await py('import os; os.kill(os.getpid(), 15)')).outcome).toMatchObject({ kind: 'signaled', signal: 'SIGTERM' })
    const program = await lined.sandbox.startLined({ command: [python, '-c', 'x = bytearray(50_000_000)\nfor i in range(3_000_000): pass'] }, undefined)
    const { usage } = await program.ended
    expect(usage.cpuUserMs).toBeGreaterThan(20)
    expect(usage.memoryPeakBytes).toBeGreaterThan(40_000_000)
  })
})

describe('a zygote that makes liners', () => {
  test('is the same, with the same descriptors, after runs that were ended while they began', async () => {
    const descriptors = (pid: number): number => (isRoot ? readdirSync(`/proc/${pid}/fd`).length : 0)
    const [zygote] = called('zygote') as [number]
    const before = descriptors(zygote)
    for (let round = 0; round < 30; round++) {
      const stop = new AbortController()
      const started = lined.sandbox.startLined({ command: sleepForLong }, stop.signal)
      setTimeout(() => stop.abort(new Error('no more')), round / 4)
      const program = await started.catch(() => undefined)
      await program?.kill('no more')
    }
    expect((await py('print(6 * 7)')).out).toBe('42\n')
    expect(called('zygote')).toEqual([zygote])
    await waitUntil(() => descriptors(zygote) <= before)
    expect(statusOf(zygote)).toMatchObject({ Name: 'zygote', CapEff: '0000000000000000' })
  })
})

describe('a fork is as a python3 that was just started', () => {
  test('in which processor its libc says that it is on', async () => {
    const code = `
import ctypes, os
libc, seen = ctypes.CDLL(None), []
for processor in sorted(os.sched_getaffinity(0)) * 2:
    os.sched_setaffinity(0, {processor})
    seen.append(libc.sched_getcpu() == processor)
print(set(seen))`
    expect(await py(code)).toMatchObject({ out: '{True}\n', err: '' })
  })

  test('in what OpenSSL draws, which no two have in common, and in what C does at its end', async () => {
    const draw = 'import ssl, hashlib; print(ssl.RAND_bytes(16).hex(), hashlib.sha256(b"a").hexdigest()[:8])'
    const drawn = [await py(draw), await py(draw)]
    expect(drawn.map(({ out, err }) => [out.split(' ')[1], err])).toEqual([
      ['ca978112\n', ''],
      ['ca978112\n', ''],
    ])
    expect(drawn[0]?.out).not.toBe(drawn[1]?.out)
    // Held back until it exits.
    expect((await py('import ctypes; ctypes.CDLL(None).puts(b"said by C")')).out).toBe('said by C\n')
  })
})
