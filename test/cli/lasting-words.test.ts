import { describe, expect, test } from 'vitest'
import { lastName, meansContents, parseCopy } from '../../src/cli/copy-ends.js'
import { meant, nearWords } from '../../src/cli/near-words.js'
import { type Named, pickSandbox } from '../../src/cli/sandbox-reference.js'
import { tableOf } from '../../src/cli/table.js'

const sandbox = (id: string, name?: string): Named => ({ id, spec: { name } as Named['spec'] })
const ids = ['aaaaaaaaaaaaaaaaaaaa', 'aabbbbbbbbbbbbbbbbbb', 'cccccccccccccccccccc'] as const
const all = [sandbox(ids[0], 'review'), sandbox(ids[1], 'build'), sandbox(ids[2], 'aa')]

describe('a sandbox is named', () => {
  test.each([
    ['by its id', ids[1], ids[1]],
    ['by its name', 'review', ids[0]],
    ['by the beginning of its id', 'aab', ids[1]],
    ['by a name that others begin with', 'aa', ids[2]],
  ])('%s', (_, reference, id) => {
    expect(pickSandbox(reference, all).id).toBe(id)
  })

  test('by a beginning of several, which are listed instead of one being taken', () => {
    const message = `'a' could be any of ${ids[0]} (review), ${ids[1]} (build)`
    expect(() => pickSandbox('a', all)).toThrow(expect.objectContaining({ code: 'conflict', message, hint: 'glovebox ls' }))
  })

  test('by a name that two have, which are listed, and at most five', () => {
    const twins = Array.from({ length: 7 }, (_, index) => sandbox(`t${index}`.padEnd(20, 'x'), 'twin'))
    expect(() => pickSandbox('twin', twins)).toThrow(/^'twin' could be any of t0x+ \(twin\), .*t4x+ \(twin\), and 2 more$/)
  })

  test('by its own id though another is called so', () => {
    expect(pickSandbox(ids[0], [sandbox(ids[2], ids[0]), sandbox(ids[0])]).id).toBe(ids[0])
  })

  test.each([
    ['reveiw', "there is no sandbox 'reveiw' (did you mean review?)", 'glovebox ls'],
    ['nothing-like-it', "there is no sandbox 'nothing-like-it'", 'glovebox ls'],
    ['', "there is no sandbox ''", 'glovebox ls'],
  ])('%j is none, and the error says what was meant', (reference, message, hint) => {
    expect(() => pickSandbox(reference, all)).toThrow(expect.objectContaining({ code: 'not-found', message, hint }))
  })

  test('when there is none at all, the hint makes one', () => {
    expect(() => pickSandbox('x', [])).toThrow(expect.objectContaining({ hint: 'glovebox create' }))
  })
})

describe('what was meant', () => {
  test.each([
    ['cretae', ['create', 'code'], ['create']],
    ['lsa', ['ls', 'rm'], ['ls']],
    ['x', ['ls', 'rm', 'cp'], []],
    ['stat', ['stats', 'start'], ['stats', 'start']],
    ['REVIEW', ['review'], ['review']],
    ['a-very-long-name-that-differs', ['another-very-long-one'], []],
  ])('by %s of %j is %j', (typed, words, near) => {
    expect(nearWords(typed, words)).toEqual(near)
  })

  test('is told in brackets, or not at all', () => {
    expect([meant([]), meant(['a']), meant(['a', 'b'])]).toEqual(['', ' (did you mean a?)', ' (did you mean a, or b?)'])
  })
})

describe('the ends of a copy', () => {
  test.each([
    ['a.txt', 'box:b', { kind: 'local', path: 'a.txt' }, { kind: 'sandbox', sandbox: 'box', path: 'b' }],
    ['box:/etc/passwd', '.', { kind: 'sandbox', sandbox: 'box', path: '/etc/passwd' }, { kind: 'local', path: '.' }],
    ['-', 'box:', { kind: 'stream' }, { kind: 'sandbox', sandbox: 'box', path: '.' }],
    ['./a:b', 'box:c:d', { kind: 'local', path: './a:b' }, { kind: 'sandbox', sandbox: 'box', path: 'c:d' }],
    ['one:a', 'other:b', { kind: 'sandbox', sandbox: 'one', path: 'a' }, { kind: 'sandbox', sandbox: 'other', path: 'b' }],
  ])('%s → %s', (from, to, first, second) => {
    expect(parseCopy(from, to)).toEqual({ from: first, to: second })
  })

  test.each([
    ['a', 'b', /neither 'a' nor 'b' is of a sandbox/],
    ['-', '-', /is of a sandbox/],
    ['', 'box:a', /must not be empty/],
    [':a', 'b', /names no sandbox/],
  ])('%j and %j are refused', (from, to, message) => {
    expect(() => parseCopy(from, to)).toThrow(expect.objectContaining({ code: 'invalid', message: expect.stringMatching(message) as unknown }))
  })

  test.each([
    ['a/b', 'b', false],
    ['a/b/', 'b', true],
    ['a/.', undefined, true],
    ['..', undefined, true],
    ['/', undefined, true],
    ['~', undefined, false],
    ['a..', 'a..', false],
  ])('of %s the name is %s', (path, name, contents) => {
    expect([lastName(path), meansContents(path)]).toEqual([name, contents])
  })
})

test('a table has its columns under their heads, and no cell breaks a line or drives a terminal', () => {
  expect(
    tableOf(
      ['A', 'LONGER'],
      [
        ['x\ny', 'z'],
        ['', '\u001b[2J'],
      ],
    ),
  ).toBe('A     LONGER\nx\\ny  z\n      \\x1b[2J\n')
})
