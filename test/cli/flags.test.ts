import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { explainClamped } from '../../src/cli/clamped-line.js'
import { parseMountFlag } from '../../src/cli/mount-flag.js'
import { parseRunFlags } from '../../src/cli/run-flags.js'
import { SandboxError } from '../../src/contract/errors.js'
import { limitsSchema } from '../../src/contract/limits.js'
import { parsePolicy } from '../../src/policy/policy-file.js'

function refusalOf(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'invalid') return error.message
    throw error
  }
  throw new Error('was not refused')
}

describe('flags become', () => {
  test('a spec that states only what was stated', () => {
    expect(parseRunFlags(['true'], {})).toEqual({ spec: { limits: {} }, request: { command: ['true'] } })
  })

  test('every field when every flag is given', () => {
    const flags = {
      env: ['A=1', 'B='],
      workdir: '/w',
      user: 'root',
      command: ['python3', '/bin/ls'],
      memory: '64m',
      cpus: '.5',
      cpuTime: '1s',
      timeout: '10m',
      disk: '1m',
      inodes: '100',
      fileSize: '1k',
      openFiles: '32',
      pids: '8',
      readRate: '1m',
      writeRate: '2m',
      output: '1k',
      root: 'overlay',
      mount: ['/data', '/in:/workspace/in:rw'],
      seccomp: '/p.json',
      driver: 'fake',
      minTier: 'none',
      template: 'python',
      name: 'n',
    }
    const { spec, request } = parseRunFlags(['a', 'b'], flags)
    expect(spec).toEqual({
      template: 'python',
      name: 'n',
      env: { A: '1', B: '' },
      limits: {
        memory: 2 ** 26,
        cpus: 0.5,
        cpuTime: 1000,
        time: 600_000,
        disk: 2 ** 20,
        inodes: 100,
        fileSize: 1024,
        openFiles: 32,
        processes: 8,
        readRate: 2 ** 20,
        writeRate: 2 ** 21,
        output: 1024,
      },
      lifetime: 660_000,
      user: 'root',
      root: 'overlay',
      mounts: [
        { source: '/data', target: '/mnt/data', mode: 'ro' },
        { source: '/in', target: '/workspace/in', mode: 'rw' },
      ],
      commands: ['python3', '/bin/ls'],
      seccomp: '/p.json',
      driver: 'fake',
      minTier: 'none',
    })
    expect(Object.keys(spec.limits ?? {}).sort()).toEqual(Object.keys(limitsSchema.shape).sort())
    expect(request).toMatchObject({ command: ['a', 'b'], cwd: '/w' })
  })

  test('a variable with a name that is none, for the engine to refuse', () => {
    expect(Object.entries(parseRunFlags(['true'], { env: ['__proto__=x'] }).spec.env ?? {})).toEqual([['__proto__', 'x']])
  })

  test('an absolute path where a profile is relative', () => {
    expect(parseRunFlags(['true'], { seccomp: 'p.json' }).spec.seccomp).toBe(join(process.cwd(), 'p.json'))
  })

  test.each([
    ['the time that is stated', { timeout: '4m' }, {}, undefined],
    ['more than the usual lifetime', { timeout: '5m' }, {}, 360_000],
    ["a policy's time", {}, { defaults: { limits: { time: '10m' } } }, 660_000],
    ["a policy's time and lifetime", {}, { defaults: { limits: { time: '10m' }, lifetime: '1h' } }, undefined],
    ['no more than a policy allows, where the run fits into it', { timeout: '5m' }, { ceiling: { lifetime: '330s' } }, 330_000],
    ['more than a policy allows where it does not, so that it is refused', { timeout: '5m' }, { ceiling: { lifetime: '1m' } }, 360_000],
  ])('a lifetime that leaves room for %s', (_, flags, policy, lifetime) => {
    expect(parseRunFlags(['true'], flags, parsePolicy(policy)).spec.lifetime).toBe(lifetime)
  })
})

const sizes = ['4m', '16t', "'512m'"] as const
const limitFlags: readonly (readonly [flag: string, key: string, least: string, most: string, example: string])[] = [
  ['--memory', 'memory', ...sizes],
  ['--cpus', 'cpus', '0.01', '4096', "'0.5'"],
  ['--cpu-time', 'cpuTime', '1ms', '7d', "'10s'"],
  ['--timeout', 'timeout', '1ms', '7d', "'60s'"],
  ['--disk', 'disk', '64k', '16t', "'100m'"],
  ['--inodes', 'inodes', '64', '4294967296', "'10000'"],
  ['--file-size', 'fileSize', '0b', '16t', "'50m'"],
  ['--open-files', 'openFiles', '16', '1048576', "'256'"],
  ['--pids', 'pids', '1', '100000', "'64'"],
  ['--read-rate', 'readRate', '4k', '16t', "'10m'"],
  ['--write-rate', 'writeRate', '4k', '16t', "'10m'"],
  ['--output', 'output', '0b', '1g', "'10m'"],
]

describe.each(limitFlags)('%s', (flag, key, least, most, example) => {
  const withUnit = (text: string): string => (least.endsWith('ms') ? `${text}s` : text)

  test.each(['lots', '-1', 'NaN', 'Infinity', '', '1e3x', '0x10'])('given %j says what is expected, from where to where', (text) => {
    const message = refusalOf(() => parseRunFlags(['true'], { [key]: text }))
    expect(message).toMatch(new RegExp(`^${flag}: expected an? .+ such as ${example}, at least ${least} and at most ${most}, got '${text}'$`))
  })

  test('given 2^60 names the most', () => {
    const text = withUnit(String(2n ** 60n))
    expect(refusalOf(() => parseRunFlags(['true'], { [key]: text }))).toBe(`${flag}: must be at most ${most}, got '${text}'`)
  })

  test('given zero names the least, unless zero is possible', () => {
    const parse = () => parseRunFlags(['true'], { [key]: withUnit('0') })
    if (least === '0b') expect(Object.values(parse().spec.limits ?? {})).toEqual([0])
    else expect(refusalOf(parse)).toBe(`${flag}: must be at least ${least}, got '${withUnit('0')}'`)
  })
})

describe('a mount', () => {
  const here = process.cwd()

  test.each([
    ['/data', { source: '/data', target: '/mnt/data', mode: 'ro' }],
    ['/data:rw', { source: '/data', target: '/mnt/data', mode: 'rw' }],
    ['/data:/workspace/d', { source: '/data', target: '/workspace/d', mode: 'ro' }],
    ['/data:/workspace/d:ro', { source: '/data', target: '/workspace/d', mode: 'ro' }],
    ['sub/../in/', { source: join(here, 'in'), target: '/mnt/in', mode: 'ro' }],
    ['.', { source: here, target: `/mnt/${basename(here)}`, mode: 'ro' }],
    ['./ro', { source: join(here, 'ro'), target: '/mnt/ro', mode: 'ro' }],
    ['/a\\:b:/mnt/c\\:d:rw', { source: '/a:b', target: '/mnt/c:d', mode: 'rw' }],
    ['/a\\\\:rw', { source: '/a\\', target: '/mnt/a\\', mode: 'rw' }],
    ['/a\\b', { source: '/a\\b', target: '/mnt/a\\b', mode: 'ro' }],
    ['/ü 漢', { source: '/ü 漢', target: '/mnt/ü 漢', mode: 'ro' }],
  ])('%s is %o', (text, mount) => {
    expect(parseMountFlag(text)).toEqual(mount)
  })

  test.each([
    ['', '--mount : names no folder; expected SRC[:DST][:ro|rw|overlay]'],
    [':/mnt/x', '--mount :/mnt/x: names no folder; expected SRC[:DST][:ro|rw|overlay]'],
    ['/a:/b:/c', '--mount /a:/b:/c: expected SRC[:DST][:ro|rw|overlay]; a colon that belongs to a path is written \\:'],
    ['/a:/b:rw:ro', '--mount /a:/b:rw:ro: expected SRC[:DST][:ro|rw|overlay]; a colon that belongs to a path is written \\:'],
    [
      '/a:here',
      "--mount /a:here: expected SRC[:DST][:ro|rw|overlay], where DST is an absolute path, got 'here'; a colon that belongs to a path is written \\:",
    ],
    ['/a:', "--mount /a:: expected SRC[:DST][:ro|rw|overlay], where DST is an absolute path, got ''; a colon that belongs to a path is written \\:"],
    ['/', '--mount /: has no name of its own, so DST must be stated'],
  ])('%j is refused: %s', (text, message) => {
    expect(refusalOf(() => parseMountFlag(text))).toBe(message)
  })
})

test.each([
  [{ command: [''] }, '--command: must not be empty'],
  [{ command: Array.from({ length: 257 }, () => 'ls') }, '--command: may be repeated at most 256 times'],
  [{ root: 'writable' }, "--root: must be one of readonly, overlay, got 'writable'"],
  [{ seccomp: '' }, '--seccomp: must not be empty; expected the path of a profile'],
])('%o is refused: %s', (flags, message) => {
  expect(refusalOf(() => parseRunFlags(['true'], flags))).toBe(message)
})

test('what a policy lowered is one line that names flags, values and the policy', () => {
  expect(explainClamped([])).toBeUndefined()
  expect(
    explainClamped([
      { field: 'limits.memory', asked: 2 ** 31, given: 2 ** 30, policy: 'a.json' },
      { field: 'limits.time', asked: 90_000, given: 60_000, policy: 'a.json' },
      { field: 'minTier', asked: 'none', given: 'process', policy: 'b' },
      { field: 'commands', asked: ['ls', 'sh'], given: ['ls'], policy: 'b' },
      { field: 'mounts[1]', asked: { source: '/etc' }, given: null, policy: 'b' },
      { field: 'env.TOKEN', asked: 'TOKEN', given: null, policy: 'b' },
    ]),
  ).toBe(
    "lowered by policy 'a.json': --memory from 2g to 1g; --timeout from 1.5m to 1m. " +
      "lowered by policy 'b': --min-tier from 'none' to 'process'; --command from 'ls', 'sh' to 'ls'; --mount number 2 left out; --env TOKEN left out",
  )
})
