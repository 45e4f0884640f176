import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalJson } from '../../src/contract/canonical-json.js'
import { hashOf } from '../../src/receipt/index.js'

describe('the canonical form', () => {
  test('is that of the standard, for its own example', () => {
    const value = {
      numbers: [333333333.33333329, 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
      string: '\u20ac$\u000f\u000aA\'\u0042\u0022\u005c\\"/',
      literals: [null, true, false],
    }
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
  })

  test('has keys in the order of their UTF-16 code units', () => {
    const value = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, ö: 7 }
    expect(Object.keys(JSON.parse(canonicalJson(value).replaceAll('"1"', '"one"')) as object)).toEqual([
      '\r',
      'one',
      '\u0080',
      'ö',
      '\u20ac',
      '\ud83d\ude00',
      '\ufb33',
    ])
  })

  test('is the same for every order of keys, and means the same', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const turned = Object.fromEntries(Object.entries(value).reverse())
        expect(canonicalJson(turned)).toBe(canonicalJson(value))
        expect(canonicalJson(JSON.parse(canonicalJson(value)))).toBe(canonicalJson(value))
      }),
    )
  })

  test('keeps a key that is named as the prototype', () => {
    expect(canonicalJson(JSON.parse('{"__proto__":1}'))).toBe('{"__proto__":1}')
  })

  test.each([
    ['NaN', { a: [Number.NaN] }, 'value.a[0]: is NaN'],
    ['infinity', -Infinity, 'value: is -Infinity'],
    ['undefined', { a: undefined }, 'value.a: is undefined'],
    ['a hole', [1, , 3], 'value[1]: is undefined'],
    ['half a character', { a: '\ud800' }, 'value.a: holds half of a character'],
    ['half a character in a name', { '\udc00': 1 }, 'value: holds half of a character'],
    ['a big integer', { a: 1n }, 'value.a: is nothing that JSON has'],
    ['a date', { a: new Date(0) }, 'value.a: is nothing that JSON has'],
    ['a function', { toJSON: () => 1 }, 'value.toJSON: is nothing that JSON has'],
    ['a symbol', { [Symbol.iterator]: 1 }, 'value: is nothing that JSON has'],
  ])('is refused to %s, by its place', (_, value, message) => {
    expect(() => canonicalJson(value)).toThrow(expect.objectContaining({ code: 'invalid', message }))
  })

  test('is refused to what is nested without end, instead of ending the stack', () => {
    expect(() => canonicalJson(JSON.parse('['.repeat(5000) + ']'.repeat(5000)))).toThrow(expect.objectContaining({ code: 'invalid' }))
  })
})

describe('a hash', () => {
  test('is SHA-256 of the canonical form', () => {
    expect(hashOf({ b: 1, a: 'x' })).toBe('cdab067e9f3beb32d1252cfd63e492592fecbf591b0d08cadb24bb17f3864246')
  })

  test('passes over names without a value, and takes half a character as programs get it', () => {
    expect(hashOf({ a: 1, b: undefined })).toBe(hashOf({ a: 1 }))
    expect(hashOf(['\ud800'])).toBe(hashOf(['\ufffd']))
  })
})
