import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { cli, cliPath, collect, parseAs, printed, processesWith, type RunReport, startCli, withoutChances } from './cli.js'
import { enforcesMemory, isBwrapReady } from './machine.js'
import { skipGroup, testUnless } from '../unless.js'

const inCell = (flags: readonly string[], command: readonly string[]) => cli(['run', '-q', '--driver', 'bwrap', ...flags, '--', ...command])
const python = '/usr/bin/python3'

describe('in a real cell', () => {
  skipGroup(!isBwrapReady && 'bwrap is not ready here: ./glovebox doctor')
  test('--json of a computation is the object that was promised', async () => {
    const { code, stdout, stderr } = await cli(['run', '--json', '--', python, '-c', 'print(6*7)'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(withoutChances(parseAs<RunReport>(stdout))).toEqual({
      id: 'ID',
      outcome: { kind: 'exited', code: 0 },
      stdout: '42\n',
      stderr: '',
      truncated: false,
      usage: {
        wallMs: 'number',
        cpuUserMs: 'number',
        cpuSystemMs: 'number',
        memoryPeakBytes: 'number',
        // A number where a cgroup counts them, and null where none does.
        processesPeak: expect.stringMatching(/^(number|object)$/) as unknown,
        readBytes: 'number',
        writtenBytes: 'number',
        outputBytes: 3,
        hits: 'object',
      },
      driver: 'bwrap',
      tier: 'process',
      unenforced: expect.any(Array) as unknown,
      clamped: [],
    })
  })

  test('exit 7 is 7', async () => {
    expect(await inCell([], ['sh', '-c', 'exit 7'])).toMatchObject({ code: 7, stdout: '', stderr: '' })
  })

  test('a sleep of a minute with a second of time is 124 within two, and no sleep survives', async () => {
    const seconds = `60.${Number.parseInt(randomBytes(3).toString('hex'), 16)}`
    const { code, stdout } = await inCell(['--timeout', '1s', '--json'], ['sleep', seconds])
    const report = parseAs<RunReport>(stdout)
    expect({ code, outcome: report.outcome }).toEqual({ code: 124, outcome: { kind: 'timed-out', by: 'wall', limitMs: 1000 } })
    // From the start of the program: how long it takes a busy machine to start us is not what is promised.
    expect(report.usage.wallMs).toBeGreaterThanOrEqual(1000)
    expect(report.usage.wallMs).toBeLessThan(2000)
    expect(processesWith(seconds)).toEqual([])
  })

  test('yes stops at the output limit', async () => {
    const result = await inCell([], ['yes'])
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 137, stderr: 'glovebox: yes was killed: it printed more than 10 MiB (--output)\n' })
    expect(result.bytes.length).toBe(10 * 2 ** 20)
  })

  test('our memory grows by less than 50 MiB however much is printed', async () => {
    const sink = openSync('/dev/null', 'w')
    const child = spawn(process.execPath, [cliPath, 'run', '-q', '--output', '512m', '--', 'sh', '-c', 'echo ready >&2; exec yes'], {
      stdio: ['ignore', sink, 'pipe'],
    })
    const resident: number[] = []
    const closed = once(child, 'close')
    let said = ''
    ;(child.stderr as Readable).on('data', (chunk: Buffer) => {
      said += chunk.toString()
    })
    await once(child.stderr as Readable, 'data')
    const timer = setInterval(() => resident.push(residentBytes(child.pid)), 10)
    resident.push(residentBytes(child.pid))
    await closed
    expect({ code: child.exitCode, said }).toEqual({ code: 137, said: 'ready\nglovebox: sh was killed: it printed more than 512 MiB (--output)\n' })
    clearInterval(timer)
    closeSync(sink)
    expect(resident.length).toBeGreaterThan(5)
    expect(Math.max(...resident) - (resident[0] ?? 0)).toBeLessThan(50 * 2 ** 20)
  })

  testUnless(!enforcesMemory && 'no memory limit here: ./glovebox doctor')('too much memory is 137 with a line that says so', async () => {
    const result = await inCell(['--memory', '32m'], [python, '-c', 'b = bytearray(200 * 2**20); print(len(b))'])
    expect(result).toMatchObject({ code: 137, stdout: '', stderr: 'glovebox: /usr/bin/python3 was killed: it needed more memory than 32 MiB (--memory)\n' })
  })

  test('Ctrl-C typed at a terminal is for the program alone, not for its cell', async () => {
    const marker = `marker${randomBytes(6).toString('hex')}`
    const script = "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done"
    const words = [process.execPath, cliPath, 'run', '-q', '--driver', 'bwrap', '--', 'sh', '-c', script, marker]
    const child = spawn('script', ['-qefc', `exec ${words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')}`, '/dev/null'])
    const result = collect(child)
    await printed(child, 'ready')
    child.stdin.write('\u0003')
    const { code, stdout } = await result
    expect({ code, caught: stdout.split('caught').length - 1 }).toEqual({ code: 5, caught: 1 })
    expect(processesWith(marker)).toEqual([])
  })

  test('SIGTERM closes the cell with everything in it', async () => {
    const seconds = `61.${Number.parseInt(randomBytes(3).toString('hex'), 16)}`
    const child = startCli(['run', '-q', '--driver', 'bwrap', '--', 'sh', '-c', `trap '' TERM; setsid sleep ${seconds} & echo ready; wait`])
    child.stdin.end()
    const result = collect(child)
    await printed(child, 'ready')
    child.kill('SIGTERM')
    expect(await result).toMatchObject({ code: 143, stderr: '' })
    expect(processesWith(seconds)).toEqual([])
  })
})

function residentBytes(pid: number | undefined): number {
  try {
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}
