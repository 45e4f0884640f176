import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSeccompCompiler } from '../../src/sys/seccomp.js'
import { ARCH, simulate } from '../../src/sys/filter-simulator.js'
import { testUnless } from '../unless.js'

const isX86 = process.arch === 'x64'
const arch = isX86 ? ARCH.x86_64 : ARCH.aarch64
/** Numbers on x86_64 and aarch64. */
const numbers = {
  read: [0, 63],
  ioctl: [16, 29],
  socket: [41, 198],
  socketpair: [53, 199],
  sendto: [44, 206],
  sendmsg: [46, 211],
  setsockopt: [54, 208],
  sendmmsg: [307, 269],
  clone: [56, 220],
  personality: [135, 92],
  mknodat: [259, 33],
  mount: [165, 40],
  ptrace: [101, 117],
  clone3: [435, 435],
  openat2: [437, 437],
  mseal: [462, 462],
} as const

let filter: Uint8Array
let cacheDir: string

beforeAll(async () => {
  cacheDir = mkdtempSync(join(tmpdir(), 'seccomp-filter-'))
  filter = await createSeccompCompiler({ cacheDir }).compileDefault()
})

afterAll(() => rmSync(cacheDir, { recursive: true }))

function ask(name: keyof typeof numbers, ...args: (number | bigint)[]): string {
  return simulate(filter, { arch, number: numbers[name][isX86 ? 0 : 1], args: args.map(BigInt) })
}

const high = 0xdeadbeefn << 32n

describe('the default filter', () => {
  it('lets everyday calls through', () => {
    expect([ask('read'), ask('openat2'), ask('mseal')]).toEqual(['allow', 'allow', 'allow'])
  })

  it('answers EPERM to calls it knows as dangerous', () => {
    expect([ask('mount'), ask('ptrace')]).toEqual(['errno:1', 'errno:1'])
  })

  it('answers ENOSYS to clone3 and to every number that is newer than it', () => {
    expect(ask('clone3')).toBe('errno:38')
    for (let number = 471; number < 2000; number++) expect(simulate(filter, { arch, number })).toBe('errno:38')
  })

  it('kills a process that enters by another architecture', () => {
    const foreign = isX86 ? [ARCH.i386, ARCH.aarch64] : [ARCH.x86_64, 0x40000028]
    for (const other of foreign) for (const number of [0, 1, 3, 120, 435, 0x40000000]) expect(simulate(filter, { arch: other, number })).toBe('kill-process')
  })

  testUnless(!isX86 && 'only x86-64 has an x32 bit')('kills a process that sets the x32 bit, whatever the number', () => {
    for (let number = 0; number < 600; number++) expect(simulate(filter, { arch, number: 0x40000000 + number })).toBe('kill-process')
  })

  it('refuses TIOCSTI and TIOCLINUX and no other request, whatever the upper half of the register holds', () => {
    const refused: number[] = []
    for (let request = 0; request < 0x10000; request++) if (ask('ioctl', 0, request) !== 'allow') refused.push(request)
    expect(refused).toEqual([0x5412, 0x541c])
    for (const request of [0x5412n, 0x541cn]) {
      for (const upper of [high, 1n << 32n, 0xffffffffn << 32n]) expect(ask('ioctl', 0, request | upper)).toBe('errno:1')
      for (let bit = 0n; bit < 32n; bit++) {
        const neighbour = request ^ (1n << bit)
        expect(ask('ioctl', 0, neighbour | high), neighbour.toString(16)).toBe('allow')
      }
    }
    expect(ask('ioctl', 0, 0xffffffff80045430n)).toBe('allow')
  })

  it('refuses clone with any namespace flag and allows it for processes and threads', () => {
    const flags = [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]
    for (const flag of flags) for (const rest of [0, 17, 0x3d0f00]) expect(ask('clone', BigInt(flag | rest) | high)).toBe('errno:1')
    expect(ask('clone', 0x7e020000)).toBe('errno:1')
    for (const plain of [17, 0x1200011, 0x3d0f00, 0x4111]) expect([ask('clone', plain), ask('clone', BigInt(plain) | high)]).toEqual(['allow', 'allow'])
  })

  it('opens AF_UNIX, TCP, UDP and ping sockets only', () => {
    const opened: string[] = []
    for (let family = 0; family < 64; family++) {
      for (let type = 0; type < 16; type++) {
        for (const protocol of [0, 1, 2, 6, 9, 17, 33, 58, 132, 136, 255, 256, 262]) {
          if (ask('socket', family, type, protocol) === 'allow' && family !== 1) opened.push([family, type, protocol].join())
        }
      }
    }
    const ip = ['1,0', '1,6', '2,0', '2,17']
    expect(opened.toSorted()).toEqual([...ip.map((rest) => `2,${rest}`), '2,2,1', ...ip.map((rest) => `10,${rest}`), '10,2,58'].toSorted())
    expect(ask('socket', 2n | high, 1n | 0x80800n | high, high)).toBe('allow')
  })

  it('answers EAFNOSUPPORT to other families also when the upper half of the register is set', () => {
    for (const family of [0, 3, 9, 11, 15, 16, 17, 21, 29, 31, 38, 40, 43, 44, 45]) {
      expect([ask('socket', family, 1, 0), ask('socket', BigInt(family) | high, 1, 0), ask('socketpair', family, 1, 0)]).toEqual(Array(3).fill('errno:97'))
    }
    expect([ask('socketpair', 1, 1, 0), ask('socketpair', 2, 1, 0)]).toEqual(['allow', 'errno:97'])
    expect([ask('socket', 2, 3, 1), ask('socket', 10, 3, 58)]).toEqual(['errno:1', 'errno:1'])
    expect([ask('socket', 2, 1, 132), ask('socket', 2, 1, 262)]).toEqual(['errno:93', 'errno:93'])
    for (let protocol = 0; protocol < 32; protocol++) expect(ask('socket', 16, 3, protocol)).toBe('errno:97')
  })

  it('refuses MSG_MORE among any other flags, and nothing else that is sent', () => {
    const sent = (flags: bigint) => [ask('sendto', 3, 0, 0, flags), ask('sendmsg', 3, 0, flags), ask('sendmmsg', 3, 0, 0, flags)]
    for (let bit = 0n; bit < 64n; bit++) {
      expect(sent(1n << bit), `bit ${bit}`).toEqual(Array(3).fill(bit === 15n ? 'errno:95' : 'allow'))
      expect(sent(0x8000n | (1n << bit)), `bit ${bit}`).toEqual(Array(3).fill('errno:95'))
    }
    expect([sent(0n), sent(0xffff7fffn | high)]).toEqual([Array(3).fill('allow'), Array(3).fill('allow')])
  })

  it('refuses UDP_CORK at both levels that know it, and no other option', () => {
    const refused: string[] = []
    for (let level = 0; level < 512; level++) {
      for (let option = 0; option < 256; option++) if (ask('setsockopt', 3, level, option) !== 'allow') refused.push(`${level},${option}`)
    }
    expect(refused).toEqual(['17,1', '136,1'])
    for (const level of [17n, 136n]) {
      expect([ask('setsockopt', 3, level | high, 1n | high), ask('setsockopt', 3, level, 1)]).toEqual(['errno:95', 'errno:95'])
      for (let bit = 0n; bit < 32n; bit++) {
        expect([ask('setsockopt', 3, level ^ (1n << bit), 1), ask('setsockopt', 3, level, 1n ^ (1n << bit))], `bit ${bit}`).toEqual(['allow', 'allow'])
      }
    }
  })

  it('refuses READ_IMPLIES_EXEC and other execution domains', () => {
    expect([0, 8, 0x20000, 0x40000, 0xffffffff].map((persona) => ask('personality', persona))).toEqual(Array(5).fill('allow'))
    expect([0x400000, 0x100000, 6, 0x200000].map((persona) => ask('personality', persona))).toEqual(Array(4).fill('errno:38'))
  })

  it('makes fifos and sockets but no device nodes', () => {
    expect([0, 0o10644, 0o100644, 0o140644].map((mode) => ask('mknodat', 0, 0, mode))).toEqual(Array(4).fill('allow'))
    expect([0o20644, 0o60644].map((mode) => ask('mknodat', 0, 0, BigInt(mode) | high))).toEqual(['errno:1', 'errno:1'])
  })
})

describe('the default profile', () => {
  const profile = readFileSync(new URL('../../src/sys/profiles/default.json', import.meta.url), 'utf8')
  const rules = (JSON.parse(profile) as { syscalls: { comment: string; names: string[] }[] }).syscalls

  it('has every group explained in the docs', () => {
    const docs = readFileSync(new URL('../../docs/seccomp.md', import.meta.url), 'utf8')
    const groups = new Set(rules.map((rule) => rule.comment.split(/[:, ]/)[0]))
    expect([...groups].filter((group) => !docs.includes(`**${group}`))).toEqual([])
  })

  it('decides about every call of this kernel up to listxattrat, but for those that no kernel implements', () => {
    const undecided: number[] = []
    for (let number = 0; number <= 466; number++) if (simulate(filter, { arch, number, args: [8n, 1n, 0n] }) === 'errno:38') undecided.push(number)
    const unimplemented = isX86 ? [181, 182, 183, 184, 185, 214, 215, 236, ...range(337, 423)] : [...range(244, 259), ...range(295, 423)]
    expect(undecided.filter((number) => !unimplemented.includes(number))).toEqual([435, 457, 458, 459, 460, 461])
  })
})

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}
