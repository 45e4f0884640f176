import { describe, expect, test } from 'vitest'
import { absolutePath, describePath, linkTarget } from '../../src/policy/file-path.js'
import { refusalOf } from './refusal-of.js'

const place = { workdir: '/workspace', home: '/home/user' }

function pathOf(path: unknown): string {
  return Buffer.from(absolutePath(path, place)).toString('latin1')
}

describe('a path', () => {
  test.each([
    ['/etc/passwd', '/etc/passwd'],
    ['a/b', '/workspace/a/b'],
    ['.', '/workspace'],
    ['./', '/workspace'],
    ['.//a', '/workspace/a'],
    ['.a', '/workspace/.a'],
    ['..', '/workspace/..'],
    ['~', '/home/user'],
    ['~/', '/home/user'],
    ['~/a', '/home/user/a'],
    ['~other/a', '/workspace/~other/a'],
    ['./~', '/workspace/~'],
    ['/~', '/~'],
    ['../../etc/passwd', '/workspace/../../etc/passwd'],
    ['%2e%2e%2fetc', '/workspace/%2e%2e%2fetc'],
    ['..\\etc', '/workspace/..\\etc'],
  ])('%j is %j: only where it begins is filled in, the rest is for the kernel', (given, meant) => {
    expect(pathOf(given)).toBe(meant)
  })

  test('of a root without a name gets no second slash', () => {
    expect(Buffer.from(absolutePath('a', { workdir: '/', home: '/' })).toString()).toBe('/a')
    expect(Buffer.from(absolutePath('~', { workdir: '/', home: '/' })).toString()).toBe('/')
  })

  test('may be bytes that are no text', () => {
    expect(pathOf(Uint8Array.of(0x61, 0xff))).toBe('/workspace/a\xff')
    expect(pathOf(Uint8Array.of(0x7e, 0x2f, 0xff))).toBe('/home/user/\xff')
  })

  test('is a copy: changing the bytes afterwards changes nothing', () => {
    const given = Uint8Array.from(Buffer.from('/a'))
    const path = absolutePath(given, place)
    given[1] = 0
    expect(Buffer.from(path).toString()).toBe('/a')
  })

  test.each([
    ['', 'path: must not be empty'],
    [new Uint8Array(0), 'path: must not be empty'],
    ['a\0b', 'path: a\uFFFDb contains a NUL character'],
    [Uint8Array.of(0x2f, 0), 'path: /\uFFFD contains a NUL character'],
    [7, 'path: expected a string or bytes (Uint8Array), got a number'],
    [null, 'path: expected a string or bytes (Uint8Array), got null'],
    [['a'], 'path: expected a string or bytes (Uint8Array), got an array'],
    ['\ud800', "path: '\ud800' is no text: it has half of a character; a name that is not UTF-8 is given as bytes"],
  ])('%j is refused by name', (given, message) => {
    expect(refusalOf(() => absolutePath(given, place))).toEqual(['invalid', message])
  })

  test('has at most 4095 bytes, counted when it is absolute', () => {
    expect(absolutePath(`/${'a'.repeat(4094)}`, place)).toHaveLength(4095)
    expect(refusalOf(() => absolutePath(`/${'a'.repeat(4095)}`, place))).toEqual(['invalid', expect.stringMatching(/has 4096 bytes; at most 4095/)])
    expect(refusalOf(() => absolutePath('a'.repeat(4085), place))).toEqual(['invalid', expect.stringMatching(/has 4096 bytes; at most 4095/)])
    expect(refusalOf(() => absolutePath('é'.repeat(2500), place))).toEqual(['invalid', expect.stringMatching(/has 5000 bytes/)])
  })
})

test('the target of a link stays as it is written, and is checked like a path', () => {
  expect(Buffer.from(linkTarget('../x')).toString()).toBe('../x')
  expect(Buffer.from(linkTarget('~')).toString()).toBe('~')
  expect(refusalOf(() => linkTarget(''))).toEqual(['invalid', 'target: must not be empty'])
  expect(refusalOf(() => linkTarget('x'.repeat(5000)))).toEqual(['invalid', expect.stringMatching(/^target: .* has 5000 bytes/)])
})

test('a path in a message is short and does nothing to a terminal', () => {
  expect(describePath('/a\x1b[31m\n')).toBe('/a\uFFFD[31m\uFFFD')
  expect(describePath(Uint8Array.of(0x2f, 0xff))).toBe('/\uFFFD')
  expect(describePath('x'.repeat(100))).toHaveLength(61)
})
