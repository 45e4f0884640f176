import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import { planRun } from '../../src/policy/run.js'
import { parseSpec } from '../../src/policy/spec.js'

const MiB = 2 ** 20
const spec = parseSpec({ env: { A: 'spec', B: 'spec' }, cwd: '/srv', limits: { time: '10s', output: '1m' } })

function messageOf(request: unknown): string {
  try {
    planRun(request, spec)
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'invalid') return error.message
    throw error
  }
  return 'was not refused'
}

describe('a run', () => {
  test('takes from its sandbox what it does not say itself', () => {
    expect(planRun({ command: 'ls' }, spec)).toEqual({
      command: 'ls',
      cwd: '/srv',
      env: { A: 'spec', B: 'spec' },
      user: 'user',
      stdin: false,
      aside: false,
      timeMs: 10_000,
      limits: {
        memoryBytes: 512 * MiB,
        processes: 64,
        cpuTimeMs: undefined,
        fileSizeBytes: 100 * MiB + 4096,
        openFiles: 4096,
        openFilesAtFirst: 1024,
        stated: [],
      },
      output: { limitBytes: 2 ** 20, onLimit: 'kill' },
    })
  })

  test('has all the open files that were asked for at once, and 1,024 of those that nobody asked for', () => {
    const asked = parseSpec({ limits: { openFiles: 20_000 } })
    expect(planRun({ command: 'ls' }, asked).limits).toMatchObject({ openFiles: 20_000, openFilesAtFirst: 20_000 })
    expect(planRun({ command: 'ls' }, asked, []).limits).toMatchObject({ openFiles: 20_000, openFilesAtFirst: 1024 })
    expect(planRun({ command: 'ls', limits: { openFiles: 2048 } }, spec).limits).toMatchObject({ openFiles: 2048, openFilesAtFirst: 2048 })
  })

  test('overrides its sandbox by what it says', () => {
    const plan = planRun(
      {
        command: ['ls'],
        cwd: '/',
        env: { B: 'run' },
        user: 'root',
        stdin: true,
        timeout: '1s',
        limits: { memory: '64m', processes: 4, cpuTime: 500, fileSize: 0, openFiles: 16 },
        output: { limit: 5, onLimit: 'truncate' },
      },
      spec,
    )
    expect(plan).toEqual({
      command: ['ls'],
      cwd: '/',
      env: { A: 'spec', B: 'run' },
      user: 'root',
      stdin: true,
      aside: false,
      timeMs: 1000,
      limits: {
        memoryBytes: 64 * MiB,
        processes: 4,
        cpuTimeMs: 500,
        fileSizeBytes: 0,
        openFiles: 16,
        openFilesAtFirst: 16,
        stated: ['memory', 'processes', 'cpuTime', 'fileSize', 'openFiles'],
      },
      output: { limitBytes: 5, onLimit: 'truncate' },
    })
  })

  test('that is captured without a limit of its own takes the limit of its sandbox, and is killed there', () => {
    expect(planRun({ command: 'ls', output: {} }, spec).output).toEqual({ limitBytes: 2 ** 20, onLimit: 'kill' })
  })

  test('may lower the limits of its sandbox and never raise them', () => {
    expect(messageOf({ command: 'ls', timeout: '11s' })).toBe("timeout: 11s is above the sandbox's limits.time of 10s")
    expect(messageOf({ command: 'ls', output: { limit: '2m' } })).toBe("output.limit: 2m is above the sandbox's limits.output of 1m")
  })

  test.each([
    [{ memory: '513m' }, "limits.memory: 513m is above the sandbox's limits.memory of 512m"],
    [{ processes: 65 }, "limits.processes: 65 is above the sandbox's limits.processes of 64"],
    [{ fileSize: '1g' }, "limits.fileSize: 1g is above the sandbox's limits.fileSize of 100m"],
    [{ openFiles: 5000 }, "limits.openFiles: 5000 is above the sandbox's limits.openFiles of 4096"],
    [{ memory: 0 }, 'limits.memory: must be at least 4m, got 0'],
    [{ time: '1s' }, 'limits.time: is not a known field'],
    [{ disk: '1m' }, 'limits.disk: is not a known field'],
    [null, 'limits: expected a plain object, got null'],
  ])('cannot have limits %j of its own', (limits, message) => {
    expect(messageOf({ command: 'ls', limits })).toBe(message)
  })

  test('may have a processor time where its sandbox has none, and no more than where it has one', () => {
    expect(planRun({ command: 'ls', limits: { cpuTime: '1h' } }, spec).limits.cpuTimeMs).toBe(3_600_000)
    const held = parseSpec({ limits: { cpuTime: '2s' } })
    expect(planRun({ command: 'ls' }, held).limits).toMatchObject({ cpuTimeMs: 2000, stated: [] })
    expect(() => planRun({ command: 'ls', limits: { cpuTime: '3s' } }, held)).toThrow("limits.cpuTime: 3s is above the sandbox's limits.cpuTime of 2s")
  })

  test('in the background has no wall time but its own', () => {
    expect(planRun({ command: 'ls', background: true }, spec).timeMs).toBeUndefined()
    expect(planRun({ command: 'ls', background: true, timeout: '1h' }, spec).timeMs).toBe(3_600_000)
  })

  test.each([
    [{ command: [] }, 'command: must name a program'],
    [{ command: '' }, 'command: must not be empty'],
    [{ command: [''] }, 'command: the program name must not be empty'],
    [{ command: 7 }, 'command: must be a string for the shell, or a non-empty array of strings'],
    [{ command: ['a', 'b\0'] }, 'command[1]: must not contain a NUL character'],
    [{ command: ['a', 'b'.repeat(131_072)] }, 'command[1]: has 131072 bytes; at most 131071 are possible'],
    [{ command: ['a', '\ud800'] }, 'command[1]: contains half of a surrogate pair, which has no bytes'],
    [{ command: 'é'.repeat(65_536) }, 'command: has 131072 bytes; at most 131071 are possible'],
    [{ command: new Array(5000).fill('a') }, 'command: has 5000 arguments; at most 4096 are possible'],
    [{ command: new Array(40).fill('a'.repeat(100_000)) }, 'command: has 4000000 bytes of arguments; at most 2097152 are possible'],
    [{ command: 'ls', env: { BIG: 'x'.repeat(131_072) } }, 'env.BIG: has 131076 bytes; at most 131071 are possible'],
    [{ command: 'ls', cmd: 1 }, 'cmd: is not a known field'],
    [{}, 'command: must be a string for the shell, or a non-empty array of strings'],
    [undefined, 'run: expected a plain object, got undefined'],
  ])('that is wrong is refused by the name of its field (%#)', (request, message) => {
    expect(messageOf(request)).toBe(message)
  })

  test('of any well-formed arguments within the bounds is taken as it is', () => {
    const text = fc.string({ unit: 'grapheme' }).filter((each) => !each.includes('\0'))
    fc.assert(
      fc.property(
        fc.array(text, { minLength: 1 }).filter(([name]) => name !== ''),
        (command) => {
          expect(planRun({ command }, spec).command).toEqual(command)
        },
      ),
    )
  })
})
