import { describe, expect, test } from 'vitest'
import { exitCodeOf, signalExitCode } from '../../src/cli/exit-codes.js'
import { escapeControls, toJsonLine } from '../../src/cli/print.js'
import { nameFlags } from '../../src/cli/flag-names.js'
import { bytesInWords, durationInWords, explainOutcome, explainUnenforced, roundTimes } from '../../src/cli/words.js'
import { wrap } from '../../src/cli/wrap.js'
import type { Outcome } from '../../src/contract/run.js'

const outcomes: readonly (readonly [Outcome, number, string | undefined])[] = [
  [{ kind: 'exited', code: 0 }, 0, undefined],
  [{ kind: 'exited', code: 255 }, 255, undefined],
  [{ kind: 'signaled', signal: 'SIGSEGV' }, 139, 'prog was ended by SIGSEGV'],
  [{ kind: 'signaled', signal: 'SIGINT' }, 130, undefined],
  [{ kind: 'signaled', signal: 'SIG40' }, 168, 'prog was ended by SIG40'],
  [{ kind: 'timed-out', by: 'wall', limitMs: 1500 }, 124, 'prog was stopped: it ran longer than 1.5 s (--timeout)'],
  [{ kind: 'timed-out', by: 'cpu', limitMs: 1500 }, 124, 'prog was stopped: it used more processor time than 1.5 s (--cpu-time)'],
  [{ kind: 'out-of-memory', limitBytes: 2 ** 26 }, 137, 'prog was killed: it needed more memory than 64 MiB (--memory)'],
  [{ kind: 'output-limit', limitBytes: 10 * 2 ** 20 }, 137, 'prog was killed: it printed more than 10 MiB (--output)'],
  [{ kind: 'killed', reason: 'interrupted twice' }, 137, 'prog was killed: interrupted twice'],
  [{ kind: 'not-started', code: 126, reason: 'prog is a folder' }, 126, 'prog is a folder'],
  [{ kind: 'not-started', code: 127, reason: 'prog was not found' }, 127, 'prog was not found'],
]

test.each(outcomes)('%o has its exit code and its line', (outcome, code, line) => {
  expect(exitCodeOf(outcome)).toBe(code)
  expect(explainOutcome(outcome, 'prog')).toBe(line)
})

test('a signal nobody knows is never a success', () => {
  expect(signalExitCode('SIGWHAT')).toBe(137)
})

describe('escapeControls', () => {
  test('leaves text of any language alone', () => {
    expect(escapeControls('naïve – 漢字 👩‍🔬 ok')).toBe('naïve – 漢字 👩‍🔬 ok')
  })

  test.each([
    ['\u001b[2J', '\\x1b[2J'],
    ['a\r\nb\tc', 'a\\x0d\\nb\\tc'],
    ['\u009b31m', '\\x9b31m'],
    ['\u007f', '\\x7f'],
    ['\u2028', '\\u2028'],
    ['\u202egpj.exe', '\\u202egpj.exe'],
  ])('%j cannot drive a terminal', (text, escaped) => {
    expect(escapeControls(text)).toBe(escaped)
  })
})

test('a JSON line is one line, parses back, and holds no control character', () => {
  const value = { text: 'a\nb\u0085\u2028\u009b\u202e"\\' }
  const line = toJsonLine(value)
  expect(line.trimEnd()).toMatch(/^[\u0020-\u007e]*$/)
  expect(JSON.parse(line)).toEqual(value)
})

test.each([
  [0, '0 bytes'],
  [1023, '1023 bytes'],
  [1024, '1 KiB'],
  [1536, '1.5 KiB'],
  [10 * 2 ** 20, '10 MiB'],
  [3 * 2 ** 30, '3 GiB'],
  [12_637_396_992, '11.7 GiB'],
])('%i bytes are %s', (bytes, words) => {
  expect(bytesInWords(bytes)).toBe(words)
})

test.each([
  [0.42, '0.4 ms'],
  [41.6, '42 ms'],
  [1000, '1 s'],
  [61_234, '61.2 s'],
  [300_000, '5 min'],
])('%d milliseconds are %s', (ms, words) => {
  expect(durationInWords(ms)).toBe(words)
})

test('limits that are not enforced are one line, and none when all are', () => {
  expect(explainUnenforced([])).toBeUndefined()
  expect(
    explainUnenforced([
      { limit: 'memory', why: 'no cgroup' },
      { limit: 'cpus', why: 'no cgroup' },
      { limit: 'disk', why: 'no tmpfs' },
    ]),
  ).toBe('not enforced here: memory, cpus (no cgroup); disk (no tmpfs)')
})

test('reasons that are too long for one line are cut, the longest first, and none is left out', () => {
  const line = explainUnenforced([
    { limit: 'memory', why: `${'m'.repeat(90)} end` },
    { limit: 'cpus', why: 'no cgroup' },
    { limit: 'processes', why: `${'p'.repeat(190)} end` },
  ])
  expect(line).toMatch(/^not enforced here: memory \(m{30,}… end\); cpus \(no cgroup\); processes \(p{30,}… end\)$/)
  expect(line?.length).toBeLessThanOrEqual(150)
  expect(line?.length).toBeGreaterThan(140)
  const long = explainUnenforced([
    { limit: 'memory', why: `/sys/fs/cgroup/memory/${'a'.repeat(60)} may not be written by this user` },
    { limit: 'cpus', why: `/sys/fs/cgroup/cpu/${'a'.repeat(60)} may not be written by this user` },
  ])
  expect(long).toMatch(/^not enforced here: memory \(\/sys\/fs\/cgroup\/\S*… may not be written by this user\); cpus \(\S+… may not be written by this user\)$/)
})

test('times are told to the microsecond, and everything else as it is', () => {
  expect(roundTimes({ wallMs: 12.345678901, cpuUserMs: 3, outputBytes: 7, name: 'x' })).toEqual({ wallMs: 12.346, cpuUserMs: 3, outputBytes: 7, name: 'x' })
})

test('text is wrapped at words, and a word longer than a line is cut, colours apart', () => {
  const long = 'x'.repeat(200)
  const lines = wrap(`\u001b[32menforced\u001b[39m by ${long} and more`, 16).split('\n')
  expect(lines.slice(1).every((line) => line.startsWith(' '.repeat(16)) && line.length <= 80)).toBe(true)
  expect(lines.map((line) => line.trim()).join('')).toBe(`\u001b[32menforced\u001b[39m by${long} and more`)
  expect(wrap('short enough', 16)).toBe('short enough')
})

test.each([
  ['cwd: /x does not exist', '--workdir: /x does not exist'],
  ["template: there is no 'x'", "--template: there is no 'x'"],
  [
    'driver bwrap: limits.disk: 2g is above the 1g; limits.processes cannot be enforced: no cgroup',
    'driver bwrap: --disk: 2g is above the 1g; --pids cannot be enforced: no cgroup',
  ],
  ["driver x: is of tier 'none', and the least accepted (minTier) is 'vm'", "driver x: is of tier 'none', and the least accepted (--min-tier) is 'vm'"],
  ["user: 'root' is not available: only root can", "--user: 'root' is not available: only root can"],
  ['env.A: has 200000 bytes', '--env A: has 200000 bytes'],
  ['command[3]: has 200000 bytes', 'argument 3 of COMMAND: has 200000 bytes'],
  ['command[0]: has 200000 bytes', 'COMMAND: has 200000 bytes'],
  ['limits.cpuTime: 2h is above the 1h that', '--cpu-time: 2h is above the 1h that'],
  ["mounts[0].target: '/etc' is outside", "--mount target: '/etc' is outside"],
  ["mounts[2]: '/a' is in no folder", "--mount number 3: '/a' is in no folder"],
  ['driver x: mounts are not available: no', 'driver x: --mount is not available: no'],
  ['driver x: mounts that can be written to are not available: no', 'driver x: --mount with :rw is not available: no'],
  ['commands cannot be enforced: no Landlock', '--command cannot be enforced: no Landlock'],
  ["policy: there is no preset 'x'", "--policy: there is no preset 'x'"],
  ['policy.defaults.seccomp: policy x allows no profile', '--policy defaults.seccomp: policy x allows no profile'],
  ['seccomp profile /p.json: there is no such file', '--seccomp: profile /p.json: there is no such file'],
  ['constructor: is no flag', 'constructor: is no flag'],
  ['--workdir: /limits.disk does not exist', '--workdir: /limits.disk does not exist'],
  ['--env name=cwd: has no name', '--env name=cwd: has no name'],
])('%j names the flags', (message, named) => {
  expect(nameFlags(message)).toBe(named)
})
