import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ARCH, simulate } from '../../src/sys/filter-simulator.js'
import { createSeccompCompiler, type SeccompGuest } from '../../src/sys/seccomp.js'
import { readSeccompSource } from '../../src/sys/seccomp-source.js'
import { skipGroup, testUnless } from '../unless.js'

const notX86 = process.arch !== 'x64' && 'the numbers are those of x86-64'
let place: string

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'seccomp-custom-'))
})
afterEach(() => rmSync(place, { recursive: true, force: true }))

async function compile(profile: string | Record<string, unknown>, guest?: SeccompGuest): Promise<Uint8Array> {
  return createSeccompCompiler({ cacheDir: place }).compile(await readSeccompSource(profile), guest)
}

function write(name: string, content: string | Buffer): string {
  const path = join(place, name)
  writeFileSync(path, content)
  return path
}

const starting = ['read', 'write', 'execve', 'exit_group']
const allow = (names: string[], rest: object = {}) => ({ names, action: 'SCMP_ACT_ALLOW', ...rest })
const least = { defaultAction: 'SCMP_ACT_ERRNO', syscalls: [allow(starting)] }

describe('a profile is read', () => {
  it('from a file, by its path from the working folder too, or from the spec', async () => {
    const path = write('mine.json', JSON.stringify(least))
    const filter = await compile(path)
    expect(await compile(least)).toEqual(filter)
    const before = process.cwd()
    process.chdir(place)
    try {
      expect(await compile('./mine.json')).toEqual(filter)
    } finally {
      process.chdir(before)
    }
  })

  it.each<[string, () => string, string]>([
    ['is not there', () => join(place, 'none.json'), 'there is no such file'],
    ['is below a file', () => join(write('file', ''), 'none.json'), 'there is no such file'],
    ['is a folder', () => place, 'is a folder'],
    ['is no plain file', () => '/dev/null', 'is not a file'],
    ['is a link to itself', () => (symlinkSync('loop', join(place, 'loop')), join(place, 'loop')), 'goes through too many symbolic links'],
    ['is too large', () => write('large.json', Buffer.alloc(2 ** 20 + 1, ' ')), 'is larger than 1 MiB'],
    ['is not UTF-8', () => write('latin.json', Buffer.from([0x22, 0xff, 0x22])), 'is not UTF-8'],
    ['is not JSON', () => write('cut.json', '{"defaultAction":'), 'line 1, column 18: expected a value, got the end of the file'],
    ['is empty', () => write('empty.json', ''), 'line 1, column 1: expected a value, got the end of the file'],
  ])('or refused by its name when it %s', async (_, make, message) => {
    const path = make()
    await expect(compile(path)).rejects.toMatchObject({ code: 'invalid', message: `seccomp profile ${path}: ${message}` })
  })

  it('or refused when it is a fifo, without waiting for a writer', async () => {
    execFileSync('mkfifo', [join(place, 'fifo')])
    await expect(compile(join(place, 'fifo'))).rejects.toMatchObject({ code: 'invalid', message: `seccomp profile ${join(place, 'fifo')}: is not a file` })
  })

  testUnless(process.getuid?.() === 0 && 'root may read every file')('or refused when it may not be read', async () => {
    const path = write('closed.json', '{}')
    chmodSync(path, 0o000)
    await expect(compile(path)).rejects.toMatchObject({ code: 'invalid', message: `seccomp profile ${path}: may not be read` })
  })

  it('or refused when the spec holds what JSON does not', async () => {
    const circular: Record<string, unknown> = { ...least }
    circular.itself = circular
    await expect(compile(circular)).rejects.toMatchObject({ code: 'invalid', message: 'seccomp profile in the spec: cannot be written as JSON' })
    await expect(compile({ comment: 'x'.repeat(2 ** 20) })).rejects.toMatchObject({
      code: 'invalid',
      message: 'seccomp profile in the spec: is larger than 1 MiB',
    })
  })
})

describe('a wrong profile names file, rule and field', () => {
  it.each<[string, object, string]>([
    [
      'for a field',
      { ...least, syscalls: [allow(starting), allow(['a']), allow(['b']), allow(['socket'], { args: [{ index: 0, val: 1, op: 'SCMP_CMP_EQ' }] })] },
      "syscalls[3].args[0]: unknown field 'val'",
    ],
    ['for a call', { ...least, syscalls: [allow(starting), allow(['read', 'raed'])] }, "syscalls[1].names[1]: unknown system call 'raed'"],
    [
      'for a call in the older spelling',
      { ...least, syscalls: [allow(starting), { name: 'raed', action: 'SCMP_ACT_ALLOW' }] },
      "syscalls[1].name: unknown system call 'raed'",
    ],
    ['that lets nothing start', { defaultAction: 'SCMP_ACT_ERRNO' }, 'no program could start, because it refuses read, write, execve, exit_group'],
    ['that lets nothing end', { ...least, syscalls: [allow(['read', 'write', 'execve'])] }, 'no program could start, because it refuses exit_group'],
    [
      'that kills by one call',
      { defaultAction: 'SCMP_ACT_ALLOW', syscalls: [{ names: ['execve'], action: 'SCMP_ACT_KILL_PROCESS' }] },
      'no program could start, because it refuses execve',
    ],
  ])('%s', async (_, profile, message) => {
    const path = write('mine.json', JSON.stringify(profile))
    await expect(compile(path)).rejects.toMatchObject({ code: 'invalid', message: `seccomp profile ${path}: ${message}` })
  })

  it('but leaves out a call that is marked as optional, and those of other machines', async () => {
    const more = [...least.syscalls, allow(['raed'], { optional: true }), allow(['s390_runtime_instr'])]
    expect(await compile({ ...least, syscalls: more })).toEqual(await compile(least))
  })
})

/** Rules in the shape of the profile that Docker has by default. */
const dockerShape = {
  defaultAction: 'SCMP_ACT_ERRNO',
  defaultErrnoRet: 1,
  archMap: [
    { architecture: 'SCMP_ARCH_X86_64', subArchitectures: ['SCMP_ARCH_X86', 'SCMP_ARCH_X32'] },
    { architecture: 'SCMP_ARCH_AARCH64', subArchitectures: ['SCMP_ARCH_ARM'] },
  ],
  syscalls: [
    allow([...starting, '_llseek', 'arm_fadvise64_64', 'brk', 'clock_gettime64', 'close', 'fchmodat2', 'mmap', 'mseal', 'openat2', 'sigreturn', 'socketcall']),
    allow(['process_vm_readv', 'ptrace'], { includes: { minKernel: '4.8' } }),
    allow(['socket'], { args: [{ index: 0, value: 40, op: 'SCMP_CMP_NE' }] }),
    ...[0, 8, 131_072, 131_080, 4_294_967_295].map((value) => allow(['personality'], { args: [{ index: 0, value, op: 'SCMP_CMP_EQ' }] })),
    allow(['sync_file_range2', 'swapcontext'], { includes: { arches: ['ppc64le'] } }),
    allow(['arch_prctl'], { includes: { arches: ['amd64', 'x32'] } }),
    allow(['bpf', 'clone', 'clone3', 'mount', 'setns', 'unshare'], { includes: { caps: ['CAP_SYS_ADMIN'] } }),
    allow(['clone'], {
      args: [{ index: 0, value: 2_114_060_288, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }],
      excludes: { caps: ['CAP_SYS_ADMIN'], arches: ['s390', 's390x'] },
    }),
    allow(['clone'], {
      args: [{ index: 1, value: 2_114_060_288, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }],
      comment: 's390 parameter ordering for clone is different',
      includes: { arches: ['s390', 's390x'] },
      excludes: { caps: ['CAP_SYS_ADMIN'] },
    }),
    { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: 38, excludes: { caps: ['CAP_SYS_ADMIN'] } },
    allow(['chroot'], { includes: { caps: ['CAP_SYS_CHROOT'] } }),
    { names: ['kexec_load'], action: 'SCMP_ACT_KILL_PROCESS' },
    { names: ['sync'], action: 'SCMP_ACT_TRAP' },
    { names: ['syslog'], action: 'SCMP_ACT_LOG' },
  ],
}

describe('a profile in the shape of Docker’s', () => {
  skipGroup(notX86)
  const ask = (filter: Uint8Array, number: number, ...args: number[]) => simulate(filter, { arch: ARCH.x86_64, number, args: args.map(BigInt) })

  it('answers by arguments, errnos, kernels and architectures', async () => {
    const filter = await compile(dockerShape)
    const asked = { read: ask(filter, 0), fchmodat2: ask(filter, 452), mseal: ask(filter, 462), ptrace: ask(filter, 101), arch_prctl: ask(filter, 158) }
    expect(asked).toEqual({ read: 'allow', fchmodat2: 'allow', mseal: 'allow', ptrace: 'allow', arch_prctl: 'allow' })
    expect([1, 2, 40, 41].map((family) => ask(filter, 41, family))).toEqual(['allow', 'allow', 'errno:1', 'allow'])
    expect([0, 8, 1, 0x20000, 0xffffffff].map((persona) => ask(filter, 135, persona))).toEqual(['allow', 'allow', 'errno:1', 'allow', 'allow'])
    expect([17, 0x10000000, 0x20011].map((flags) => ask(filter, 56, flags))).toEqual(['allow', 'errno:1', 'errno:1'])
    expect([246, 162, 103, 165, 161].map((number) => ask(filter, number))).toEqual(['kill-process', 'trap', 'log', 'errno:1', 'errno:1'])
  })

  it('answers by the capabilities of whoever runs', async () => {
    const administrator = await compile(dockerShape, { capabilities: ['CAP_SYS_ADMIN', 'CAP_CHOWN'] })
    expect([56, 435, 165, 321, 161].map((number) => ask(administrator, number, 0x10000000))).toEqual(['allow', 'allow', 'allow', 'allow', 'errno:1'])
    expect(ask(await compile(dockerShape, { capabilities: ['CAP_SYS_CHROOT'] }), 161)).toBe('allow')
  })

  it('says of calls newer than all it names that they are not there, and of older ones what its default is', async () => {
    const filter = await compile(dockerShape)
    expect([435, 450, 461].map((number) => ask(filter, number))).toEqual(['errno:38', 'errno:1', 'errno:1'])
    for (let number = 463; number < 2000; number += 1) expect(ask(filter, number)).toBe('errno:38')
  })

  it('opens no other entry, whatever architectures it lists', async () => {
    const filter = await compile({ ...dockerShape, archMap: null, architectures: ['SCMP_ARCH_X86_64', 'SCMP_ARCH_X86', 'SCMP_ARCH_X32'] })
    for (let number = 0; number < 600; number += 1) {
      expect(ask(filter, 0x40000000 + number)).toBe('kill-process')
      expect(simulate(filter, { arch: ARCH.i386, number })).toBe('kill-process')
    }
  })

  it('allows files without a name only where nobody forbids them', async () => {
    const syscalls = [...dockerShape.syscalls, allow(['memfd_create', 'memfd_secret'])]
    const free = await compile({ ...dockerShape, syscalls })
    const held = await compile({ ...dockerShape, syscalls }, { withoutNamelessFiles: true })
    expect([319, 447].map((number) => [ask(free, number), ask(held, number)])).toEqual([
      ['allow', 'errno:38'],
      ['allow', 'errno:38'],
    ])
    for (let number = 0; number < 600; number += 1) if (number !== 319 && number !== 447) expect(ask(held, number, 17)).toBe(ask(free, number, 17))
    expect(ask(held, 0x40000000 + 319)).toBe('kill-process')
  })
})

describe('a profile that allows what it does not name', () => {
  skipGroup(notX86)

  it('does so for calls of any age, but clone3 is there only when it is named', async () => {
    const ask = (filter: Uint8Array, number: number) => simulate(filter, { arch: ARCH.x86_64, number })
    const silent = await compile({ defaultAction: 'SCMP_ACT_ALLOW' })
    const named = await compile({ defaultAction: 'SCMP_ACT_ALLOW', syscalls: [{ name: 'clone3', action: 'SCMP_ACT_ALLOW' }] })
    expect([319, 435, 470, 600].map((number) => [ask(silent, number), ask(named, number)])).toEqual([
      ['allow', 'allow'],
      ['errno:38', 'allow'],
      ['allow', 'allow'],
      ['allow', 'allow'],
    ])
  })
})

it('two rules that contradict each other are told with the profile', async () => {
  mkdirSync(join(place, 'in'))
  const path = write('in/mine.json', JSON.stringify({ ...least, syscalls: [allow(starting), { names: ['read'], action: 'SCMP_ACT_KILL' }] }))
  await expect(compile(path)).rejects.toMatchObject({
    code: 'invalid',
    message: `seccomp profile ${path}: syscalls[1] says kill-thread to read, syscalls[0] says allow to it without condition`,
  })
})
