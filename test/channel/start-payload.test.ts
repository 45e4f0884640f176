import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeStart, type StartPayload, type StartRequest } from '../../src/channel/start-payload.js'
import { decodeStart } from './start-reading.js'
import { SandboxError } from '../../src/contract/errors.js'
import { request } from './scripted-warden.js'

const text = fc.string({ unit: 'binary', maxLength: 60 }).filter((each) => !each.includes('\0'))
const name = text.filter((each) => each !== '' && !each.includes('='))
const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
const u32 = fc.integer({ min: 0, max: 0xffffffff })

const side = fc.integer({ min: 1, max: 4096 })

/** What goes together. */
const anyKind: fc.Arbitrary<Partial<StartPayload>> = fc.oneof(
  fc.record({ stdin: fc.boolean() }),
  fc.record({ stdin: fc.constant(true), terminal: fc.record({ cols: side, rows: side }) }),
  fc.record({ stdin: fc.constant(true), worker: fc.constant('files' as const), argv: fc.tuple(text) }),
  fc.record({ stdin: fc.constant(true), worker: fc.constant('files' as const), argv: fc.tuple(text), layers: fc.constant(true) }),
  fc.record({ stdin: fc.constant(true), aside: fc.constant(true) }),
)

const anyProgram = fc.record({
  argv: fc.array(text, { minLength: 1, maxLength: 10 }),
  env: fc.dictionary(name, text, { maxKeys: 10 }).map((each) => Object.fromEntries(Object.entries(each))),
  cwd: text,
  uid: u32,
  gid: u32,
  capabilities: u64,
  rlimits: fc.array(fc.record({ resource: u32, soft: u64, hard: u64 }), { maxLength: 16 }),
  stdin: fc.boolean(),
  gate: fc.boolean(),
  group: text.filter((each) => !each.includes('/') && each !== '.' && each !== '..'),
})
const anyRequest: fc.Arbitrary<StartPayload> = fc.tuple(anyProgram, anyKind).map(([program, kind]) => ({ ...program, ...kind }))

describe('the payload of START', () => {
  it('comes out as it went in', () => {
    fc.assert(
      fc.property(anyRequest, (each) => {
        expect(decodeStart(encodeStart(each))).toEqual(each)
      }),
    )
  })

  it('carries a variable called __proto__ as any other', () => {
    const env = Object.fromEntries([['__proto__', 'x']])
    expect(Object.entries(decodeStart(encodeStart({ ...request, env })).env)).toEqual([['__proto__', 'x']])
  })

  it('is never misread: any bytes give a request or SandboxError', () => {
    const damaged = fc.tuple(anyRequest, fc.nat(), fc.nat(255)).map(([each, at, value]) => {
      const payload = encodeStart(each)
      payload[at % payload.length] = value
      return payload
    })
    fc.assert(
      fc.property(fc.oneof(damaged, fc.uint8Array({ maxLength: 200 })), (payload) => {
        try {
          expect(decodeStart(payload).argv.length).toBeGreaterThan(0)
        } catch (error) {
          expect(error).toBeInstanceOf(SandboxError)
        }
      }),
      { numRuns: 1000 },
    )
  })

  it('is refused when it is cut short or something follows', () => {
    const payload = encodeStart({ ...request, env: { A: 'b' }, rlimits: [{ resource: 7, soft: 1n, hard: 2n }] })
    for (let length = 0; length < payload.length; length += 1) expect(() => decodeStart(payload.subarray(0, length))).toThrow(SandboxError)
    const terminal = encodeStart({ ...request, terminal: { cols: 80, rows: 24 } })
    expect(() => decodeStart(terminal.subarray(0, -1))).toThrow(SandboxError)
    expect(() => decodeStart(Buffer.concat([payload, Buffer.alloc(1)]))).toThrow(SandboxError)
  })

  it.each<[string, Partial<StartRequest>, RegExp]>([
    ['no program', { argv: [] }, /argv/],
    ['a NUL in an argument', { argv: ['a', 'b\0c'] }, /argv\[1\]/],
    ['a NUL in a value', { env: { KEY: '\0' } }, /env\.KEY/],
    ['a NUL in the folder', { cwd: '/\0' }, /cwd/],
    ['a name with =', { env: { 'A=B': '' } }, /env/],
    ['an empty name', { env: { '': 'x' } }, /env/],
    ['an argument that is too long', { argv: ['a', 'x'.repeat(131_072)] }, /argv\[1\]/],
    ['too many arguments', { argv: new Array<string>(4097).fill('x') }, /argv/],
    ['more than 4 MiB in all', { argv: new Array<string>(40).fill('x'.repeat(131_000)) }, /4194304/],
    ['a negative id', { uid: -1 }, /uid/],
    ['a fractional id', { gid: 1.5 }, /gid/],
    ['capabilities beyond 64 bits', { capabilities: 2n ** 64n }, /capabilities/],
    ['too many rlimits', { rlimits: new Array(17).fill({ resource: 1, soft: 0n, hard: 0n }) }, /rlimits/],
    ['a group above', { group: '..' }, /group/],
    ['a group that is the folder itself', { group: '.' }, /group/],
    ['a group of several components', { group: 'a/b' }, /group/],
    ['a group that is too long', { group: 'ü'.repeat(128) }, /group/],
    ['a NUL in a group', { group: 'a\0' }, /group/],
    ['a terminal without columns', { terminal: { cols: 0, rows: 24 } }, /terminal\.cols/],
    ['a terminal with too many rows', { terminal: { cols: 80, rows: 4097 } }, /terminal\.rows/],
    ['a terminal with half a column', { terminal: { cols: 80.5, rows: 24 } }, /terminal\.cols/],
    ['a terminal without input', { terminal: { cols: 80, rows: 24 }, stdin: false }, /stdin/],
    ['a worker without input', { worker: 'files', stdin: false }, /stdin/],
    ['a worker at a terminal', { worker: 'files', terminal: { cols: 80, rows: 24 } }, /worker/],
    ['a worker with arguments', { worker: 'files', argv: ['files', '-x'] }, /argv/],
    ['layers without a worker', { layers: true }, /layers/],
    ['an aside without input', { aside: true, stdin: false }, /stdin/],
    ['an aside at a terminal', { aside: true, terminal: { cols: 80, rows: 24 } }, /aside/],
    ['an aside of a worker', { aside: true, worker: 'files' }, /aside/],
    ['a negative rlimit', { rlimits: [{ resource: 1, soft: -1n, hard: 0n }] }, /rlimits/],
  ])('is refused before it is sent: %s', (_, part, message) => {
    expect(() => encodeStart({ ...request, ...part })).toThrow(expect.objectContaining({ code: 'invalid', message: expect.stringMatching(message) as unknown }))
  })
})
