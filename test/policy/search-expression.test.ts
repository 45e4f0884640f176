import { spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { posixExpression } from '../../src/policy/search-expression.js'
import { refusalOf } from './refusal-of.js'

/** By the same libc's regcomp, in bytes, as the worker. */
function grep(expression: string, line: string): boolean {
  return spawnSync('grep', ['-E', '-q', '-e', expression], { input: `${line}\n`, env: { LC_ALL: 'C', PATH: '/usr/bin:/bin' } }).status === 0
}

describe('an expression of another dialect', () => {
  test.each([
    [String.raw`^\d+$`, '123', 'abc'],
    [String.raw`^\D+$`, 'abc', 'a1'],
    [String.raw`^[\d.]+$`, '1.2', 'd'],
    [String.raw`^\w+\s\S+$`, 'a_1 !', 'ab'],
    [String.raw`\bfoo\b`, 'a foo b', 'afoo'],
    ['^(?:ab)+$', 'abab', 'aba'],
    ['^a+?b', 'aab', 'b'],
    ['^a{2}?$', 'aa', 'a'],
    [String.raw`^[^\]]+$`, 'abc\\', 'a]'],
    [String.raw`^[\^\-a]+$`, 'a-^', 'b'],
    [String.raw`^[\^]$`, '^', 'a'],
    [String.raw`^[\.]$`, '.', '\\'],
    [String.raw`^[\\]$`, '\\', '.'],
    ['^[]a]+$', 'a]', 'b'],
    ['^[[:digit:]x]+$', '1x', 'd'],
    [String.raw`it\'s`, "it's", 'it'],
    [String.raw`^a\tb$`, 'a\tb', 'atb'],
    ['^é+$', 'éé', 'é\u00e8'],
    [String.raw`^(a)\1$`, 'aa', 'ab'],
    [String.raw`\$\{x\}`, '${x}'.replace('$', () => '$'), 'x'],
  ])('%s takes %j and not %j', (expression, taken, refused) => {
    const posix = posixExpression(expression)
    expect([grep(posix, taken), grep(posix, refused)], posix).toEqual([true, false])
  })

  test.each([
    ['a(?=b)', 'has (?=, which a POSIX extended expression has not'],
    ['(?<name>a)', 'has (?<, which a POSIX extended expression has not'],
    [String.raw`\p{L}`, String.raw`has \p, which a POSIX extended expression has not`],
    [String.raw`a\nb`, String.raw`has \n: a search looks at one line at a time`],
    ['a*+', 'has a possessive quantifier, which a POSIX extended expression has not'],
    ['[é]', 'has a set with a character that is not ASCII; write (a|b) instead of [ab]'],
    ['[a', 'has a [ without its ]'],
    [String.raw`[\W]`, String.raw`has a set with \W, which a POSIX extended expression has not`],
    ['a\\', 'ends in a backslash'],
    ['é?'.repeat(1500), 'has more than 4095 bytes, as it is written for the search'],
  ])('%s is refused by name', (expression, why) => {
    const [code, message] = refusalOf(() => posixExpression(expression))
    expect(code).toBe('invalid')
    expect(message).toMatch(/^pattern: '/)
    expect(message.endsWith(why)).toBe(true)
  })
})
