import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { SandboxError } from '../../src/contract/errors.js'
import { planRun } from '../../src/policy/run.js'
import { parseFilter, parseSpec } from '../../src/policy/spec.js'

function refusalOf(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'invalid') return error.message
    throw error
  }
  return 'was not refused'
}

class Options {
  get limits() {
    return { memory: '64m' }
  }
}

const spec = parseSpec({})
const json = (text: string): unknown => JSON.parse(text)

describe('an object that is not plain', () => {
  test.each([
    [new Options(), 'spec: expected a plain object, got an Options'],
    [new Map(), 'spec: expected a plain object, got a Map'],
    [new Date(), 'spec: expected a plain object, got a Date'],
    [Object.create({ limits: {} }), 'spec: expected a plain object, got an object of another kind'],
    [5, 'spec: expected a plain object, got a number'],
    [() => undefined, 'spec: expected a plain object, got a function'],
    [{ limits: new Options() }, 'limits: expected a plain object, got an Options'],
    [{ limits: null }, 'limits: expected a plain object, got null'],
    [{ env: new Map([['A', 'x']]) }, 'env: expected a plain object, got a Map'],
    [{ metadata: [['a', 'b']] }, 'metadata: expected a plain object, got an array'],
  ])('is refused as a spec or a part of one (%#)', (input, message) => {
    expect(refusalOf(() => parseSpec(input))).toBe(message)
  })

  test('is refused as a run, a filter or a part of one', () => {
    expect(refusalOf(() => planRun(new Options(), spec))).toBe('run: expected a plain object, got an Options')
    expect(refusalOf(() => planRun({ command: 'ls', env: new Map() }, spec))).toBe('env: expected a plain object, got a Map')
    expect(refusalOf(() => planRun({ command: 'ls', output: new Options() }, spec))).toBe('output: expected a plain object, got an Options')
    expect(refusalOf(() => parseFilter(new Options()))).toBe('filter: expected a plain object, got an Options')
    expect(refusalOf(() => parseFilter({ metadata: new Map() }))).toBe('metadata: expected a plain object, got a Map')
  })
})

test('an object without a prototype, or from another realm, is as plain as any', () => {
  expect(parseSpec(Object.assign(Object.create(null), { name: 'a' })).name).toBe('a')
  expect(parseSpec(runInNewContext('({ env: { A: "x" } })')).env).toEqual({ A: 'x' })
})

describe('a key that would set a prototype', () => {
  test.each([
    ['{"__proto__":{}}', 'spec.__proto__: is not a possible name'],
    ['{"env":{"__proto__":"x"}}', 'env.__proto__: is not a possible name'],
    ['{"metadata":{"__proto__":"x"}}', 'metadata.__proto__: is not a possible name'],
    ['{"limits":{"__proto__":{"memory":1}}}', 'limits.__proto__: is not a possible name'],
  ])('is refused in a spec: %s', (text, message) => {
    expect(refusalOf(() => parseSpec(json(text)))).toBe(message)
  })

  test('is refused in a run and in a filter', () => {
    expect(refusalOf(() => planRun(json('{"command":"ls","__proto__":{}}'), spec))).toBe('run.__proto__: is not a possible name')
    expect(refusalOf(() => planRun(json('{"command":"ls","env":{"__proto__":"x"}}'), spec))).toBe('env.__proto__: is not a possible name')
    expect(refusalOf(() => planRun(json('{"command":"ls","output":{"__proto__":{}}}'), spec))).toBe('output.__proto__: is not a possible name')
    expect(refusalOf(() => parseFilter(json('{"metadata":{"__proto__":"x"}}')))).toBe('metadata.__proto__: is not a possible name')
  })
})

test.each([
  [Number.NaN, 'NaN'],
  [Number.POSITIVE_INFINITY, 'Infinity'],
  [null, 'null'],
  [64n, 'a bigint'],
  [{}, 'an object of another kind'],
])('a size that is none is refused with what is expected and what was given (%s)', (memory, given) => {
  const message = refusalOf(() => parseSpec({ limits: { memory } }))
  expect(message).toMatch(/^limits\.memory: expected .+, got /)
  expect(message).toContain(`got ${given}`)
})
