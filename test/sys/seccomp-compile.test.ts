import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nativeProgram } from '../../src/sys/native.js'
import { createSeccompCompiler } from '../../src/sys/seccomp.js'
import { ARCH, simulate } from '../../src/sys/filter-simulator.js'

const arch = process.arch === 'x64' ? ARCH.x86_64 : ARCH.aarch64
let place: string

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'seccomp-compile-'))
})
afterEach(() => rmSync(place, { recursive: true, force: true }))

function compileNatively(lines: string, ...flags: string[]) {
  const { status, stdout, stderr } = spawnSync(nativeProgram('seccomp-compile'), flags, { input: lines, timeout: 5000 })
  return { status, program: new Uint8Array(stdout), complaint: stderr.toString() }
}

describe('seccomp-compile', () => {
  it.each([
    ['an unknown call', 'default allow\nrule errno:1 nosuchcall\n', 'line 2: nosuchcall: unknown system call'],
    ['an unknown action', 'default allow\nrule maim read\n', 'line 2: maim: no action'],
    ['an errno beyond bounds', 'default errno:5000\n', 'line 1: errno:5000: no action'],
    ['a rule before the default', 'rule allow read\n', 'line 1: rule: the default must come first'],
    ['a second default', 'default allow\ndefault allow\n', 'line 2: default: stands twice'],
    ['an unknown first word', 'default allow\nrules allow read\n', 'line 2: rules: unknown first word'],
    ['a cut condition', 'default allow\nrule errno:1 read 0 masked-eq 5\n', 'line 2: end of line: no second number'],
    ['a signed value', 'default allow\nrule errno:1 read 0 eq -5\n', 'line 2: -5: no number'],
    ['a seventh argument', 'default allow\nrule errno:1 read 6 eq 5\n', 'line 2: 6: no argument index from 0 to 5'],
    ['an argument compared twice', 'default allow\nrule errno:1 read 0 eq 5 0 eq 6\n', 'line 2: 0: argument index stands twice'],
    [
      'conditions that are answered in two ways',
      'default allow\nrule log 9 0 eq 5 1 lt 6\nrule errno:1 9 1 lt 6 0 eq 5\n',
      'line 3: 9: an earlier rule answers the same conditions otherwise',
    ],
    [
      'more conditions than the kernel could load',
      `default allow\n${Array.from({ length: 4097 }, (_, value) => `rule log 9 0 eq ${value}\n`).join('')}`,
      'line 4098: 9: more rules with conditions than a filter can hold',
    ],
    ['nothing at all', '', 'standard input: no rules'],
  ])('refuses %s by its line and writes nothing', (_, lines, message) => {
    const { status, program, complaint } = compileNatively(lines)
    expect({ status, bytes: program.length }).toEqual({ status: 1, bytes: 0 })
    expect(complaint).toContain(message)
  })

  it('leaves out unknown calls that are marked, and those of other architectures', () => {
    const plain = compileNatively('default errno:38\nforeign kill-process\nrule allow read\n')
    const more = compileNatively('default errno:38\nforeign kill-process\nrule allow read\nmaybe allow nosuchcall\nrule allow s390_pci_mmio_read\n')
    expect(more).toEqual({ status: 0, program: plain.program, complaint: '' })
  })

  it('keeps the default when there is no rule', () => {
    const { program } = compileNatively('default errno:38\nforeign kill-process\n')
    expect([0, 1, 165, 500].map((number) => simulate(program, { arch, number }))).toEqual(Array(4).fill('errno:38'))
  })

  it('takes calls by number, also ones that nobody has named yet', () => {
    const { program } = compileNatively('default errno:38\nrule allow 600\n')
    expect([599, 600, 601].map((number) => simulate(program, { arch, number }))).toEqual(['errno:38', 'allow', 'errno:38'])
  })

  it('decides every call as its rule says, whatever its neighbours are', () => {
    const action = fc.constantFrom('allow', 'errno:1', 'errno:13', 'kill-process')
    const rules = fc.uniqueArray(fc.tuple(fc.oneof(fc.nat(460), fc.nat(1200)), action, fc.boolean()), { maxLength: 120, selector: ([number]) => number })
    fc.assert(
      fc.property(rules, (list) => {
        const lines = list.map(([number, act, isConditional]) => `rule ${act} ${number}${isConditional ? ' 0 eq 7' : ''}\n`)
        const { program } = compileNatively(`default errno:38\nforeign kill-process\n${lines.join('')}`)
        const of = new Map(list.map(([number, ...rest]) => [number, rest]))
        for (let number = 0; number <= 1300; number++) {
          const [act, isConditional] = of.get(number) ?? ['errno:38', false]
          const verdicts = [7n, 8n].map((first) => simulate(program, { arch, number, args: [first] }))
          expect([number, ...verdicts]).toEqual([number, act, isConditional ? 'errno:38' : act])
        }
        expect(simulate(program, { arch: ARCH.i386, number: 3 })).toBe('kill-process')
      }),
      { numRuns: 12 },
    )
  })

  it('needs few instructions for neighbours that are decided alike', () => {
    const lines = Array.from({ length: 400 }, (_, number) => `rule allow ${number}\n`).join('')
    expect(compileNatively(`default errno:38\n${lines}`).program.length / 8).toBeLessThan(20)
  })

  it('compiles for another architecture with its numbers', () => {
    const lines = 'default errno:38\nforeign kill-process\nrule allow read\nrule errno:1 openat 1 eq 7\n'
    const { program } = compileNatively(lines, '--arch', 'aarch64')
    const ask = (number: number, second = 0n) => simulate(program, { arch: ARCH.aarch64, number, args: [0n, second] })
    expect([ask(63), ask(56), ask(56, 7n), ask(0)]).toEqual(['allow', 'errno:38', 'errno:1', 'errno:38'])
    expect(simulate(program, { arch: ARCH.x86_64, number: 0 })).toBe('kill-process')
  })
})

describe('the compiled program says what the rules say', () => {
  /** Alternatives on the lower half of one argument, and no two rules that could both match. */
  const rulesOf = fc.uniqueArray(fc.record({ value: fc.nat(40), errno: fc.integer({ min: 1, max: 3 }) }), { selector: (rule) => rule.value, maxLength: 12 })
  const profileOf = fc.record({
    plain: fc.uniqueArray(fc.integer({ min: 100, max: 160 }), { maxLength: 40 }),
    conditional: fc.uniqueArray(fc.tuple(fc.integer({ min: 161, max: 180 }), fc.integer({ min: 0, max: 5 }), rulesOf), {
      selector: ([number]) => number,
      maxLength: 6,
    }),
  })

  it('for any mixture of plain and conditional rules', () => {
    fc.assert(
      fc.property(profileOf, fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }), ({ plain, conditional }, upper) => {
        const told = conditional.flatMap(([number, index, rules]) =>
          rules.map(({ value, errno }) => `rule errno:${errno} ${number} ${index} masked-eq 4294967295 ${value}`),
        )
        const { status, program, complaint } = compileNatively(
          ['default errno:38', 'foreign trap', ...plain.map((number) => `rule allow ${number}`), ...told].join('\n'),
        )
        expect({ status, complaint }).toEqual({ status: 0, complaint: '' })
        for (let number = 95; number < 190; number++) {
          const [, index = 0, rules = []] = conditional.find(([named]) => named === number) ?? []
          for (let value = 0; value < 42; value += 1) {
            const args = Array.from({ length: 6 }, (_, at) => (at === index ? (upper << 32n) | BigInt(value) : 99n))
            const errno = rules.find((rule) => rule.value === value)?.errno ?? 38
            expect(simulate(program, { arch, number, args })).toBe(plain.includes(number) ? 'allow' : `errno:${errno}`)
          }
        }
      }),
      { numRuns: 25 },
    )
  })

  const sterner = ['kill-process', 'kill-thread', 'trap', 'errno:1', 'log', 'allow']
  // The same few everywhere, so that conditions begin alike, overlap and fall on their bounds, in either half of the register.
  const edges = [0n, 7n, 8n, 0x40n, 0x41n, 0x1_0000_003fn, 0x1_0000_0040n, 0x2_0000_0001n]
  const holds = {
    ne: (value: bigint, other: bigint) => value !== other,
    lt: (value: bigint, other: bigint) => value < other,
    le: (value: bigint, other: bigint) => value <= other,
    eq: (value: bigint, other: bigint) => value === other,
    ge: (value: bigint, other: bigint) => value >= other,
    gt: (value: bigint, other: bigint) => value > other,
    'masked-eq': (value: bigint, mask: bigint) => (value & mask) === (0x40n & mask),
  }
  type Operator = keyof typeof holds
  const conditionOf = fc.record({ op: fc.constantFrom(...(Object.keys(holds) as Operator[])), value: fc.constantFrom(7n, 0x40n, 0x1_0000_0040n) })
  const conditionsOf = fc.uniqueArray(fc.tuple(fc.nat(2), conditionOf), { selector: ([index]) => index, minLength: 1, maxLength: 3 })
  const alternativesOf = fc.uniqueArray(fc.record({ action: fc.constantFrom(...sterner), conditions: conditionsOf }), {
    selector: ({ conditions }) => JSON.stringify(conditions.map(([index, { op, value }]) => `${index} ${op} ${value}`).sort()),
    minLength: 1,
    maxLength: 5,
  })

  it('for conditions that begin alike and overlap: the sternest of those that hold', () => {
    fc.assert(
      fc.property(alternativesOf, (rules) => {
        const told = rules.map(({ action, conditions }) => {
          const words = conditions.map(([index, { op, value }]) => ` ${index} ${op} ${value}${op === 'masked-eq' ? ' 64' : ''}`)
          return `rule ${action} 257${words.join('')}`
        })
        const { status, program, complaint } = compileNatively(['default errno:38', ...told, ''].join('\n'))
        expect({ status, complaint }).toEqual({ status: 0, complaint: '' })
        for (const a of edges)
          for (const b of edges)
            for (const c of edges) {
              const args = [a, b, c]
              const met = rules.filter(({ conditions }) => conditions.every(([index, { op, value }]) => holds[op](args[index] ?? 0n, value)))
              const verdict = sterner.find((action) => met.some((rule) => rule.action === action)) ?? 'errno:38'
              const seen = simulate(program, { arch, number: 257, args })
              if (seen !== verdict) expect([told, args, seen]).toEqual([told, args, verdict])
            }
      }),
      { numRuns: 60 },
    )
  })

  it('also for two that made no end of libseccomp', () => {
    const { program } = compileNatively('default kill-thread\nrule log openat 2 ge 0x40 3 lt 7\nrule log openat 2 ge 0x40 4 lt 7\n')
    const number = process.arch === 'x64' ? 257 : 56
    const ask = (...args: bigint[]) => simulate(program, { arch, number, args })
    expect([ask(0n, 0n, 64n, 7n, 6n), ask(0n, 0n, 64n, 6n, 7n), ask(0n, 0n, 64n, 7n, 7n), ask(0n, 0n, 63n, 6n, 6n)]).toEqual([
      'log',
      'log',
      'kill-thread',
      'kill-thread',
    ])
  })
})

describe('a compiler', () => {
  const text = JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW', syscalls: [{ names: ['mount'], action: 'SCMP_ACT_ERRNO' }] })
  const profile = { text, name: 'mine.json' }
  const cached = () => readdirSync(join(place, 'seccomp'))

  it('keeps one file a filter, and no drafts, when many ask at once', async () => {
    const compilers = Array.from({ length: 4 }, () => createSeccompCompiler({ cacheDir: place }))
    const filters = await Promise.all(compilers.flatMap((compiler) => [compiler.compile(profile), compiler.compile(profile)]))
    for (const filter of filters) expect(filter).toEqual(filters[0])
    expect(cached()).toHaveLength(1)
  })

  it('answers from the file that is kept', async () => {
    const filter = await createSeccompCompiler({ cacheDir: place }).compile(profile)
    expect(await createSeccompCompiler({ cacheDir: place }).compile(profile)).toEqual(filter)
    expect(cached()).toHaveLength(1)
  })

  it.each([
    ['cut short', (path: string) => truncateSync(path, 40)],
    ['empty', (path: string) => truncateSync(path, 0)],
    ['changed', (path: string) => writeFileSync(path, Buffer.alloc(80))],
  ])('compiles again when the kept file is %s', async (_, spoil) => {
    const filter = await createSeccompCompiler({ cacheDir: place }).compile(profile)
    spoil(join(place, 'seccomp', cached()[0] as string))
    expect(await createSeccompCompiler({ cacheDir: place }).compile(profile)).toEqual(filter)
  })

  it('works where nothing can be kept', async () => {
    const filter = await createSeccompCompiler({ cacheDir: '/proc/nowhere' }).compile(profile)
    expect(simulate(filter, { arch, number: process.arch === 'x64' ? 165 : 40 })).toBe('errno:1')
  })

  it('ends the work on a profile that takes too long, and names it', async () => {
    const syscalls = Array.from({ length: 4000 }, (_, value) => ({
      names: ['mount'],
      action: 'SCMP_ACT_ERRNO',
      args: [{ index: 0, op: 'SCMP_CMP_EQ', value }],
    }))
    const slow = { text: JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW', syscalls }), name: 'slow.json' }
    await expect(createSeccompCompiler({ cacheDir: place, patienceMs: 1 }).compile(slow)).rejects.toMatchObject({
      code: 'invalid',
      message: 'seccomp profile slow.json: its filter was not compiled within 1 ms',
      hint: 'use fewer rules with args, or none of your own: leave out seccomp',
    })
  })

  it('names the unknown call of a profile', async () => {
    const wrong = { text: JSON.stringify({ defaultAction: 'SCMP_ACT_ERRNO', syscalls: [{ names: ['raed'], action: 'SCMP_ACT_ALLOW' }] }), name: 'mine.json' }
    await expect(createSeccompCompiler({ cacheDir: place }).compile(wrong)).rejects.toMatchObject({
      code: 'invalid',
      message: "seccomp profile mine.json: syscalls[0].names[0]: unknown system call 'raed'",
    })
  })
})
