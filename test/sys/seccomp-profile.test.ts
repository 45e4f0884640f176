import { describe, expect, it } from 'vitest'
import { parseSeccompProfile } from '../../src/sys/seccomp-profile.js'
import { type SeccompRequest, type SeccompTarget, seccompLines } from '../../src/sys/seccomp-rules.js'

const target: SeccompTarget = { arch: 'x86_64', kernel: '6.1.0-18-amd64', capabilities: [] }

function request(profile: object, options: Partial<SeccompTarget> = {}): SeccompRequest {
  return {
    profile: parseSeccompProfile(JSON.stringify(profile), 'mine.json'),
    target: { ...target, ...options },
    name: 'mine.json',
    withoutNamelessFiles: false,
  }
}

/** The lines of a profile's own rules. */
function linesOf(profile: object, options: Partial<SeccompTarget> = {}): string[] {
  const { text, places } = seccompLines(request(profile, options))
  return text.split('\n').filter((_, index) => places[index] !== undefined)
}

const deny = { defaultAction: 'SCMP_ACT_ERRNO' }
const allow = (names: string[], rest: object = {}) => ({ names, action: 'SCMP_ACT_ALLOW', ...rest })

describe('a seccomp profile', () => {
  it('becomes a default, a word on foreign entries, a line for each call, and our words on what it does not name', () => {
    const profile = { ...deny, syscalls: [allow(['read', 'write']), allow(['bpf'], { includes: { caps: ['CAP_BPF'] } })] }
    expect(seccompLines(request(profile))).toEqual({
      text: 'default errno:1\nforeign kill-process\nrule allow read\nrule allow write\nknown bpf\nrule errno:38 clone3\nabove errno:38\n',
      places: [undefined, undefined, 'syscalls[0].names[0]', 'syscalls[0].names[1]', undefined, undefined, undefined],
    })
  })

  it('decides itself about clone3 when it names it, and about newer calls when it allows what it does not name', () => {
    expect(seccompLines(request({ defaultAction: 'SCMP_ACT_ALLOW', syscalls: [{ name: 'clone3', action: 'SCMP_ACT_ALLOW' }] })).text).toBe(
      'default allow\nforeign kill-process\nrule allow clone3\n',
    )
  })

  it('cannot allow files without a name where they are forbidden', () => {
    const { text } = seccompLines({
      ...request({ defaultAction: 'SCMP_ACT_ALLOW', syscalls: [allow(['memfd_create', 'clone3'])] }),
      withoutNamelessFiles: true,
    })
    expect(text.split('\n')).toEqual(expect.arrayContaining(['first errno:38 memfd_create', 'first errno:38 memfd_secret']))
  })

  it('answers EPERM where it names no errno, and takes errnos by number and by name', () => {
    const syscalls = [
      { names: ['a'], action: 'SCMP_ACT_ERRNO' },
      { names: ['b'], action: 'SCMP_ACT_ERRNO', errnoRet: 22 },
      { names: ['c'], action: 'SCMP_ACT_ERRNO', errno: 'ENOSYS' },
    ]
    expect(linesOf({ defaultAction: 'SCMP_ACT_ALLOW', syscalls })).toEqual(['rule errno:1 a', 'rule errno:22 b', 'rule errno:38 c'])
  })

  it('may use the older spelling with one name a rule, nulls and empty filters', () => {
    expect(
      linesOf({ ...deny, archMap: null, syscalls: [{ name: 'read', action: 'SCMP_ACT_ALLOW', args: null, comment: '', includes: {}, excludes: {} }] }),
    ).toEqual(['rule allow read'])
  })

  it('joins conditions on different arguments and offers those on one argument as alternatives', () => {
    const eq = (index: number, value: number) => ({ index, value, op: 'SCMP_CMP_EQ' })
    expect(linesOf({ ...deny, syscalls: [allow(['socket'], { args: [eq(0, 1), eq(2, 0)] })] })).toEqual(['rule allow socket 0 eq 1 2 eq 0'])
    expect(linesOf({ ...deny, syscalls: [allow(['personality'], { args: [eq(0, 0), eq(0, 8)] })] })).toEqual([
      'rule allow personality 0 eq 0',
      'rule allow personality 0 eq 8',
    ])
    const masked = { index: 0, value: 2114060288, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }
    expect(linesOf({ ...deny, syscalls: [allow(['clone'], { args: [masked] })] })).toEqual(['rule allow clone 0 masked-eq 2114060288 0'])
  })

  it('takes a rule only for the architectures, capabilities and kernels it includes and does not exclude', () => {
    const syscalls = [
      allow(['arm'], { includes: { arches: ['arm64'] } }),
      allow(['x86'], { includes: { arches: ['amd64', 'x32'] } }),
      allow(['not_x86'], { excludes: { arches: ['amd64'] } }),
      allow(['bpf'], { includes: { caps: ['CAP_BPF'] } }),
      allow(['no_bpf'], { excludes: { caps: ['CAP_BPF'] } }),
      allow(['new'], { includes: { minKernel: '4.8' } }),
      allow(['newest'], { includes: { minKernel: '6.10' } }),
    ]
    expect(linesOf({ ...deny, syscalls })).toEqual(['rule allow x86', 'rule allow no_bpf', 'rule allow new'])
    expect(linesOf({ ...deny, syscalls }, { arch: 'aarch64', capabilities: ['CAP_BPF'], kernel: '6.10.1' })).toEqual([
      'rule allow arm',
      'rule allow not_x86',
      'rule allow bpf',
      'rule allow new',
      'rule allow newest',
    ])
  })

  it('leaves out what only repeats another rule', () => {
    expect(linesOf({ ...deny, syscalls: [allow(['read', 'read']), allow(['read'])] })).toEqual(['rule allow read'])
  })

  it('marks rules whose names may be unknown', () => {
    expect(linesOf({ ...deny, syscalls: [allow(['later'], { optional: true })] })).toEqual(['maybe allow later'])
  })

  it('is refused when one rule would silently swallow another', () => {
    const syscalls = [allow(['ioctl']), { names: ['ioctl'], action: 'SCMP_ACT_ERRNO', args: [{ index: 1, value: 21522, op: 'SCMP_CMP_EQ' }] }]
    expect(() => linesOf({ ...deny, syscalls })).toThrow(
      'seccomp profile mine.json: syscalls[1] says errno:1 to ioctl, syscalls[0] says allow to it without condition',
    )
  })
})

describe('a wrong seccomp profile names rule and field', () => {
  const args = (argument: object) => ({ ...deny, syscalls: [allow(['read']), allow(['socket'], { args: [argument] })] })
  it.each([
    ['an unknown field', args({ index: 0, val: 1, op: 'SCMP_CMP_EQ' }), "syscalls[1].args[0]: unknown field 'val'"],
    ['a misspelt operator', args({ index: 0, value: 1, op: 'SCMP_CMP_EQUAL' }), 'syscalls[1].args[0].op: expected one of SCMP_CMP_NE'],
    ['a seventh argument', args({ index: 6, value: 1, op: 'SCMP_CMP_EQ' }), 'syscalls[1].args[0].index'],
    ['a number that JSON rounds', args({ index: 0, value: 2 ** 60, op: 'SCMP_CMP_EQ' }), 'syscalls[1].args[0].value'],
    ['an unknown action', { ...deny, syscalls: [{ names: ['read'], action: 'ALLOW' }] }, 'syscalls[0].action: expected one of SCMP_ACT_ALLOW'],
    ['a tracer that is not there', { defaultAction: 'SCMP_ACT_TRACE' }, 'defaultAction: SCMP_ACT_TRACE needs a tracer'],
    [
      'both spellings',
      { ...deny, syscalls: [{ name: 'a', names: ['b'], action: 'SCMP_ACT_ALLOW' }] },
      "syscalls[0]: must have either 'names' or the older 'name'",
    ],
    ['an empty list of names', { ...deny, syscalls: [{ names: [], action: 'SCMP_ACT_ALLOW' }] }, 'syscalls[0].names'],
    ['an unknown errno', { ...deny, defaultErrno: 'ENOPE' }, "defaultErrno: expected the name of an error, such as EPERM, got 'ENOPE'"],
    ['flags', { ...deny, flags: ['SECCOMP_FILTER_FLAG_SPEC_ALLOW'] }, 'flags: the warden loads the filter without flags'],
    ['a missing default', { syscalls: [] }, 'defaultAction'],
  ])('%s', (_, profile, message) => {
    const parse = () => parseSeccompProfile(JSON.stringify(profile), 'mine.json')
    expect(parse).toThrow(message)
    expect(parse).toThrow(expect.objectContaining({ code: 'invalid' }))
  })

  it('text that is no JSON', () => {
    expect(() => parseSeccompProfile('{', 'mine.json')).toThrow(
      'seccomp profile mine.json: line 1, column 2: expected a name in double quotes, got the end of the file',
    )
    expect(() => parseSeccompProfile('{"syscalls":[],\n "syscalls":[]}', 'mine.json')).toThrow(
      "seccomp profile mine.json: line 2, column 2: 'syscalls' stands here twice",
    )
  })
})
