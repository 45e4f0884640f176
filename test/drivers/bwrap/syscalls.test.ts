import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPlatform } from '../../../src/compose.js'
import type { Platform } from '../../../src/contract/platform.js'
import type { SpecInput, UserName } from '../../../src/contract/spec.js'
import { Sandbox } from '../../../src/sandbox/index.js'
import { ARCH, simulate } from '../../../src/sys/filter-simulator.js'
import { createSeccompCompiler } from '../../../src/sys/seccomp.js'
import { skipGroup, testUnless } from '../../unless.js'

const notX86 = process.arch !== 'x64' && 'the numbers are those of x86-64'
const notRoot = process.getuid?.() !== 0 && 'only root can give a cell more than one id'
/** Beyond the last that any kernel has, and some far away. */
const numbers = [...Array.from({ length: 520 }, (_, number) => number), 1000, 4095, 65_536]
const users: readonly UserName[] = process.getuid?.() === 0 ? ['user', 'root'] : ['user']

let platform: Platform
let place: string
let program: Buffer
let filter: Uint8Array

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), 'gbx-calls-'))
  platform = createPlatform()
  execFileSync('gcc', [
    '-std=gnu11',
    '-O1',
    '-static',
    '-o',
    join(place, 'attempt'),
    fileURLToPath(new URL('../../sys/programs/attempt-calls.c', import.meta.url)),
  ])
  program = readFileSync(join(place, 'attempt'))
  filter = await createSeccompCompiler({ cacheDir: place }).compileDefault()
})

afterAll(async () => {
  await platform[Symbol.asyncDispose]()
  rmSync(place, { recursive: true })
})

/** What the kernel answered to each line, in a cell of its own. */
async function attempt(lines: readonly string[], spec: Partial<SpecInput>): Promise<string[]> {
  await using sandbox = await Sandbox.create({ platform, ...spec, limits: { time: '2m' } })
  const planted = await sandbox.run('cat > attempt && chmod +x attempt', { stdin: program })
  const { outcome, stdout, stderr } = await sandbox.run(['./attempt'], { stdin: lines.map((line) => `${line}\n`).join('') })
  expect([planted.exitCode, outcome, stderr]).toEqual([0, { kind: 'exited', code: 0 }, ''])
  return stdout.trim().split('\n')
}

const ask = (number: number, args: readonly bigint[] = []): string => simulate(filter, { arch: ARCH.x86_64, number, args })
const denied = (): number[] => numbers.filter((number) => ask(number) !== 'allow')

describe('every call that the default profile refuses', () => {
  skipGroup(notX86)

  test('is on the list that was looked through', () => {
    const golden = readFileSync(new URL('../../sys/golden/denied-calls-x86_64.txt', import.meta.url), 'utf8')
    const listed = golden.split('\n').flatMap((line) => (line.startsWith('#') || line === '' ? [] : [line.split(' ').filter((_, index) => index !== 1)]))
    const found = numbers.filter((number) => number < 471 && ask(number) !== 'allow').map((number) => [`${number}`, ask(number)])
    expect(found).toEqual(listed)
  })

  test.each(users)('is refused to %s by the kernel as the simulated filter says', async (user) => {
    const answers = await attempt(
      denied().map((number) => `native ${number}`),
      { user },
    )
    expect(denied().map((number, index) => `${number} ${answers[index]}`)).toEqual(denied().map((number) => `${number} ${ask(number)}`))
    expect(answers.length).toBeGreaterThan(200)
  })

  test.each(users)('kills %s when it comes through the 32-bit entry, and so does every other', async (user) => {
    const answers = await attempt(
      numbers.map((number) => `i386 ${number}`),
      { user },
    )
    expect(numbers.flatMap((number, index) => (answers[index] === 'signal:31' ? [] : [`${number} ${answers[index]}`]))).toEqual([])
  })

  test('kills when it has the x32 bit', async () => {
    const answers = await attempt(
      numbers.map((number) => `x32 ${number}`),
      {},
    )
    expect(new Set(answers)).toEqual(new Set(['signal:31']))
  })
})

describe('where a profile allows everything', () => {
  skipGroup(notX86)
  const seccomp = { defaultAction: 'SCMP_ACT_ALLOW', syscalls: [{ name: 'clone3', action: 'SCMP_ACT_ALLOW' }] }

  test.each(users)('%s is answered the same to every call that the default profile lets through', async (user) => {
    const lines = numbers.filter((number) => ask(number) === 'allow').map((number) => `native ${number}`)
    expect(lines.length).toBeGreaterThan(280)
    // What some calls answer depends on the moment, also without any filter: those are asked again.
    let asked = lines
    let answers: { readonly under: string; readonly free: string }[] = []
    for (let round = 0; round < 5 && asked.length > 0; round += 1) {
      const [under, free] = [await attempt(asked, { user }), await attempt(asked, { user, seccomp })]
      answers = asked
        .map((line, index) => ({ under: `${line} ${under[index]}`, free: `${line} ${free[index]}` }))
        .filter((answer) => answer.under !== answer.free)
      asked = asked.filter((line) => answers.some(({ under }) => under.startsWith(`${line} `)))
    }
    expect(answers).toEqual([])
  })

  test('calls that the default profile refuses are answered otherwise, so the profile is what refuses them', async () => {
    const known = { chroot: 161, io_setup: 206, mbind: 237, remap_file_pages: 216, name_to_handle_at: 303, adjtimex: 159 }
    const lines = Object.values(known).map((number) => `native ${number}`)
    expect((await attempt(lines, {})).filter((answer) => answer === 'errno:1' || answer === 'errno:38')).toHaveLength(lines.length)
    expect(await attempt(lines, { seccomp })).not.toEqual(expect.arrayContaining(['errno:1']))
  })

  test.each(users)('%s makes no namespace and opens no odd socket all the same, because the filter of the warden holds below every profile', async (user) => {
    const namespaces = [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]
    const answers: readonly (readonly [line: string, answer: string])[] = [
      ...[0x80, ...namespaces].map((flag) => [`native 272 ${flag}`, 'errno:1'] as const),
      ...namespaces.map((flag) => [`native 56 ${0xdeadbeef00000000n | BigInt(flag | 17)}`, 'errno:1'] as const),
      ['native 308 0 0', 'errno:1'],
      ['native 435', 'errno:38'],
      ...[3, 15, 17, 21, 29, 30, 31, 38, 40, 43, 44].map((family) => [`native 41 ${family} 1 0`, 'errno:97'] as const),
      ['native 53 40 1 0', 'errno:97'],
      ['native 56 17', 'ok'],
      ['native 41 1 1 0', 'ok'],
      ['native 41 10 2 0', 'ok'],
      ['native 41 16 3 0', 'ok'],
    ]
    const found = await attempt(
      answers.map(([line]) => line),
      { user, seccomp },
    )
    expect(answers.map(([line], index) => [line, found[index]])).toEqual(answers)
  })

  test('the other entries are closed all the same', async () => {
    const lines = [0, 20, 39, 120, 435].flatMap((number) => [`i386 ${number}`, `x32 ${number}`])
    expect(new Set(await attempt(lines, { seccomp }))).toEqual(new Set(['signal:31']))
  })
})

describe('calls that are judged by their arguments', () => {
  skipGroup(notX86)
  const high = 0xdeadbeefn << 32n
  const flags = [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]
  const SIGCHLD = 17
  const refusals: [number, (number | bigint)[], string][] = [
    ...flags.flatMap((flag): [number, (number | bigint)[], string][] => [
      [56, [flag | SIGCHLD], 'errno:1'],
      [56, [BigInt(flag | SIGCHLD) | high], 'errno:1'],
    ]),
    [16, [0, 0x5412], 'errno:1'],
    [16, [0, 0x5412n | high], 'errno:1'],
    [16, [0, 0x541cn | (1n << 32n)], 'errno:1'],
    ...[0, 9, 16, 17, 21, 29, 31, 38, 40, 44, 45].map((family): [number, number[], string] => [41, [family, 2, 0], 'errno:97']),
    [41, [40n | high, 1n, 0n], 'errno:97'],
    [41, [2, 3, 1], 'errno:1'],
    [41, [10, 3, 58], 'errno:1'],
    [41, [2, 1, 132], 'errno:93'],
    [41, [16, 3, 9], 'errno:97'],
    ...[17, 136].map((level): [number, (number | bigint)[], string] => [54, [-1, BigInt(level) | high, 1], 'errno:95']),
    [44, [-1, 0, 0, 0x8000], 'errno:95'],
    [46, [-1, 0, 0x8040n | high], 'errno:95'],
    [307, [-1, 0, 0, 0x8000], 'errno:95'],
    [53, [2, 1, 0], 'errno:97'],
    [135, [0x400000], 'errno:38'],
    [135, [0x100000], 'errno:38'],
    [133, [0, 0o20644], 'errno:1'],
    [259, [0, 0, 0o60644], 'errno:1'],
  ]
  const allowed: [number, (number | bigint)[], string][] = [
    [56, [SIGCHLD], 'ok'],
    [56, [BigInt(SIGCHLD) | high], 'ok'],
    [41, [1, 1, 0], 'ok'],
    [41, [2, 1, 0], 'ok'],
    [41, [2, 2, 17], 'ok'],
    [41, [10, 1, 6], 'ok'],
    [135, [0xffffffff], 'ok'],
    [135, [0x40000], 'ok'],
    // No descriptor, not a terminal, and no name: the kernel's own words.
    [54, [-1, 6, 1], 'errno:9'],
    [44, [-1, 0, 0, 0x4000], 'errno:9'],
    [16, [0, 0x5413], 'errno:25'],
    [133, [0, 0o10644], 'errno:14'],
  ]

  test.each(users)('answer %s what the rules say, whatever the upper halves of the registers hold', async (user) => {
    const table = [...refusals, ...allowed]
    const answers = await attempt(
      table.map(([number, args]) => ['native', number, ...args].join(' ')),
      { user },
    )
    expect(table.map(([number, args], index) => [number, args.join(), answers[index]])).toEqual(
      table.map(([number, args, answer]) => [number, args.join(), answer]),
    )
    const simulated = table.map(([number, args]) => ask(number, args.map(BigInt)))
    expect(simulated).toEqual([...refusals.map(([, , answer]) => answer), ...allowed.map(() => 'allow')])
  })
})

testUnless(notRoot)('a rule for a capability holds for the user who has it, and for no other', async () => {
  const bindsLow = { includes: { caps: ['CAP_NET_BIND_SERVICE'] } }
  const seccomp = {
    defaultAction: 'SCMP_ACT_ALLOW',
    syscalls: [
      { names: ['getpriority'], action: 'SCMP_ACT_ERRNO', errnoRet: 77, ...bindsLow },
      { names: ['getppid'], action: 'SCMP_ACT_ERRNO', errnoRet: 78, excludes: bindsLow.includes },
    ],
  }
  const code = 'import ctypes; libc = ctypes.CDLL(None, use_errno=True); libc.getpriority(0, 0); print(ctypes.get_errno(), __import__("os").getppid() < 0)'
  const printed = async (user: UserName): Promise<string> => {
    await using sandbox = await Sandbox.create({ platform, user, seccomp })
    return (await sandbox.run(['/usr/bin/python3', '-c', code])).stdout
  }
  expect([await printed('root'), await printed('user')]).toEqual(['77 False\n', '0 True\n'])
})
