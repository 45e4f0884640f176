import { describe, expect, it } from 'vitest'
import { runRequestSchema } from '../../src/contract/run.js'
import { specSchema } from '../../src/contract/spec.js'
import { plainRequest } from '../../src/policy/plain-request.js'
import { plainSpec } from '../../src/policy/plain-spec.js'

describe('a spec that asks for nothing but what it gets anyway', () => {
  const whole = specSchema.parse({})

  it.each([
    ['nothing', {}],
    ['empty things', { limits: {}, env: {}, metadata: {}, mounts: [] }],
    ['what has no value', { name: undefined, limits: undefined, driver: undefined, policy: undefined }],
    ['all of what it gets', whole],
  ])('becomes what the schema makes of it: %s', (_, spec) => {
    expect(plainSpec(spec)).toEqual(specSchema.parse(spec))
    expect(Object.keys(plainSpec(spec) ?? {})).toEqual(Object.keys(whole))
  })

  it.each([
    ['a field that is stated', { name: 'a' }],
    ['another value', { user: 'root' }],
    ['another value of the same kind', { lifetime: '5m' }],
    ['a limit', { limits: { memory: '64m' } }],
    ['a limit without a value', { limits: { memory: undefined } }],
    ['a mount', { mounts: [{ source: '/srv', target: '/srv' }] }],
    ['a policy', { policy: 'strict' }],
    ['a network', { network: { allow: [] } }],
    ['an unknown field', { nmae: undefined }],
    ['a prototype', JSON.parse('{"__proto__":{}}')],
    ['a symbol', { [Symbol('name')]: 1 }],
    ['a list for an object', { env: [] }],
    ['an object for a list', { mounts: {} }],
    ['a map', { env: new Map() }],
    ['no object', undefined],
    ['a list', []],
  ])('is left to the schema with %s', (_, spec) => {
    expect(plainSpec(spec)).toBeUndefined()
  })
})

describe('a request as most are', () => {
  it.each([
    ['a command', { command: ['ls', ''] }],
    ['an input', { command: ['cat'], stdin: true }],
    ['a captured output', { command: ['cat'], stdin: false, output: {} }],
  ])('becomes what the schema makes of it: %s', (_, request) => {
    expect(plainRequest(request)).toEqual(runRequestSchema.parse(request))
  })

  // biome-ignore lint/suspicious/noSparseArray: an array may have a hole
  const holed = ['ls', , 'a']
  it.each([
    ['a shell', { command: 'ls' }],
    ['no program', { command: [] }],
    ['a program without a name', { command: [''] }],
    ['a NUL', { command: ['ls', 'a\0b'] }],
    ['a number', { command: ['ls', 1] }],
    ['a hole', { command: holed }],
    ['a bound', { command: ['ls'], output: { limit: 1 } }],
    ['an input that is no yes', { command: ['ls'], stdin: 'yes' }],
    ['a variable', { command: ['ls'], env: { A: '1' } }],
    ['a place', { command: ['ls'], cwd: '/' }],
    ['an unknown field', { command: ['ls'], comand: undefined }],
    ['no object', 'ls'],
  ])('is left to the schema with %s', (_, request) => {
    expect(plainRequest(request)).toBeUndefined()
  })
})
