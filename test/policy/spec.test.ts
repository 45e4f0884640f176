import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import { defaultLimits } from '../../src/contract/limit-words.js'
import { changeLimits, matchesFilter, parseFilter, parseId, parseSpec } from '../../src/policy/spec.js'

function refusalOf(act: () => unknown): SandboxError {
  try {
    act()
  } catch (error) {
    if (error instanceof SandboxError) return error
    throw error
  }
  throw new Error('was not refused')
}

describe('a spec', () => {
  test('that says nothing is completed with every default', () => {
    expect(parseSpec({})).toEqual({
      template: 'host',
      metadata: {},
      env: {},
      user: 'user',
      minTier: 'process',
      lifetimeMs: 300_000,
      root: 'readonly',
      mounts: [],
      network: false,
      onExpiry: 'close',
      ring: 2 ** 20,
      limits: { ...defaultLimits, inodes: 25_600, fileSizeBytes: 100 * 2 ** 20 + 4096, stated: [] },
    })
  })

  test('keeps what it says in base units, and remembers which limits were stated', () => {
    const spec = parseSpec({ limits: { memory: '1g', time: '2m', output: 0 }, lifetime: '1h' })
    expect(spec.limits).toEqual({
      ...defaultLimits,
      inodes: 25_600,
      fileSizeBytes: 100 * 2 ** 20 + 4096,
      memoryBytes: 2 ** 30,
      timeMs: 120_000,
      outputBytes: 0,
      stated: ['memory', 'time', 'output'],
    })
    expect(spec.lifetimeMs).toBe(3_600_000)
  })

  test.each([
    [{ memroy: 1 }, 'memroy: is not a known field'],
    [{ limits: { ram: 1, memory: '1g' } }, 'limits.ram: is not a known field'],
    [{ limits: { cpus: 'two' } }, "limits.cpus: expected a finite number, got 'two'"],
    [{ limits: { processes: 0 } }, 'limits.processes: must be at least 1, got 0'],
    [{ limits: { processes: 2 ** 60 } }, 'limits.processes: must be at most 100000, got 1152921504606847000'],
    [{ mounts: {} }, 'mounts: expected an array, got an object'],
    [{ limits: { memory: -1 } }, 'limits.memory: must be at least 4m, got -1'],
    [{ env: { 'A=B': 'x' } }, 'env.A=B: a variable name must not contain = or a NUL character'],
    [{ env: { A: 'a\0' } }, 'env.A: must not contain a NUL character'],
    [{ cwd: 'tmp' }, 'cwd: must be an absolute path'],
    [{ user: 'admin' }, "user: expected one of user, root, got 'admin'"],
    [null, 'spec: expected a plain object, got null'],
    [[], 'spec: expected a plain object, got an array'],
  ])('that is wrong is refused by the name of its field: %j', (input, message) => {
    const error = refusalOf(() => parseSpec(input))
    expect([error.code, error.message]).toEqual(['invalid', message])
  })

  test('with several faults names them all, up to a bound', () => {
    const faults = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`bad${index}`, 1]))
    expect(refusalOf(() => parseSpec(faults)).message).toMatch(/^bad0: .*bad4: is not a known field; and 4 more$/)
  })

  test('never brings control characters of a key into the message', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 1 }), (key) => {
        const error = refusalOf(() => parseSpec({ [`x${key}`]: 1 }))
        expect(error.code).toBe('invalid')
        expect(error.message).not.toMatch(/[\p{Cc}\p{Cf}]/u)
      }),
    )
  })

  test('is either refused as invalid or complete, whatever is thrown at it', () => {
    fc.assert(
      fc.property(fc.anything(), (input) => {
        try {
          const spec = parseSpec(input)
          const { cpuTimeMs: _, readBytesPerSecond: __, writeBytesPerSecond: ___, ...always } = spec.limits
          expect(Object.values(always)).not.toContain(undefined)
        } catch (error) {
          expect(error).toBeInstanceOf(SandboxError)
          expect((error as SandboxError).code).toBe('invalid')
        }
      }),
    )
  })

  test('may carry at most 1 MiB of environment', () => {
    const env = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`V${index}`, 'x'.repeat(120_000)]))
    expect(refusalOf(() => parseSpec({ env })).message).toBe('env: has 1080027 bytes together; at most 1048576 are possible')
  })
})

describe('a change of limits', () => {
  const { limits } = parseSpec({ limits: { memory: '64m', disk: '10m' } })

  test('leaves all that it does not name as it is', () => {
    expect(changeLimits(limits, { memory: '1g', cpuTime: '2s' })).toEqual({
      limits: { ...limits, memoryBytes: 2 ** 30, cpuTimeMs: 2000, stated: ['memory', 'cpuTime', 'disk'] },
      changed: ['memory', 'cpuTime'],
    })
    expect(changeLimits(limits, {})).toEqual({ limits, changed: [] })
  })

  test('of the disk takes along what follows it, unless that was stated', () => {
    expect(changeLimits(limits, { disk: '20m' }).limits).toMatchObject({ inodes: 5120, fileSizeBytes: 20 * 2 ** 20 + 4096 })
    const { limits: own } = parseSpec({ limits: { inodes: 77, fileSize: '1m' } })
    expect(changeLimits(own, { disk: '20m' }).limits).toMatchObject({ diskBytes: 20 * 2 ** 20, inodes: 77, fileSizeBytes: 2 ** 20 })
  })

  test.each([
    [{ memory: 'lots' }, /^limits\.memory: expected a size such as '512m'/],
    [{ memory: Number.NaN }, /^limits\.memory: /],
    [{ disk: 2 ** 60 }, /^limits\.disk: must be at most 16t/],
    [{ nonsense: 1 }, /^limits\.nonsense: is not a known field$/],
    [undefined, /^limits: expected a plain object, got undefined$/],
    [[], /^limits: expected a plain object, got an array$/],
  ])('%j is refused by the name of its field', (change, message) => {
    const error = refusalOf(() => changeLimits(limits, change))
    expect([error.code, error.message]).toEqual(['invalid', expect.stringMatching(message)])
  })
})

describe('a filter', () => {
  const spec = parseSpec({ name: 'a', agent: 'b', metadata: { x: '1', y: '2' } })

  test.each([
    [{}, true],
    [{ name: 'a' }, true],
    [{ name: 'a', agent: 'c' }, false],
    [{ metadata: { x: '1' } }, true],
    [{ metadata: { x: '1', z: '3' } }, false],
    [{ metadata: { toString: 'x' } }, false],
  ])('%j matches by all that it names: %s', (filter, isMatch) => {
    expect(matchesFilter({ spec }, parseFilter(filter))).toBe(isMatch)
  })

  test('with a condition that has no value is refused instead of matching everything', () => {
    expect(refusalOf(() => parseFilter({ agent: undefined })).message).toBe('agent: is undefined; leave it out to match every sandbox')
    expect(refusalOf(() => parseFilter({ agnet: 'x' })).message).toBe('agnet: is not a known field')
  })
})

test('an id that could not be one is refused before anything is looked up', () => {
  expect(refusalOf(() => parseId('../etc')).message).toBe('id: must be a sandbox id: 20 lower-case letters and digits')
  expect(parseId('abcdefghij0123456789')).toBe('abcdefghij0123456789')
})
