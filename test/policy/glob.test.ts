import { describe, expect, test } from 'vitest'
import { parseGlob } from '../../src/policy/glob.js'
import { refusalOf } from './refusal-of.js'

describe('a glob', () => {
  test.each([
    ['*.ts', ['a.ts', '.ts', '.hidden.ts'], ['a.js', 'src/a.ts', 'a.ts/b']],
    ['src/*', ['src/a', 'src/.b'], ['src', 'src/a/b', 'asrc/b']],
    ['src/**', ['src/a', 'src/a/b/c'], ['src', 'srcs/a']],
    ['**', ['a', 'a/b', 'a/b/c'], []],
    ['**/*.ts', ['a.ts', 'x/a.ts', 'x/y/a.ts'], ['a.js', 'a.ts/b']],
    ['a/**/b', ['a/b', 'a/x/b', 'a/x/y/b', 'a/b/b'], ['a', 'b', 'a/b/c']],
    ['**/a/**/b/*', ['a/b/c', 'x/a/y/b/c'], ['a/b', 'a/c/b']],
    ['?', ['a', 'é', '𝄞'], ['', 'ab', '/']],
    ['[a-c]x', ['ax', 'cx'], ['dx', '[a-c]x']],
    ['[!a-c]x', ['dx'], ['ax']],
    ['[]]', [']'], ['[]]']],
    ['\\[a', ['[a'], ['a']],
    ['{a,b{c,d}}.ts', ['a.ts', 'bc.ts', 'bd.ts'], ['b.ts', 'a,b.ts']],
    ['{src,test}/**', ['src/a', 'test/b/c'], ['docs/a']],
    ['\\*', ['*'], ['a']],
    ['a{b}', ['ab'], ['a', 'a{b}']],
    ['dir/', ['dir'], ['dir/a']],
  ])('%j takes %j and not %j', (pattern, taken, refused) => {
    const glob = parseGlob(pattern)
    expect(taken.filter((path) => !glob.matches(path))).toEqual([])
    expect(refused.filter((path) => glob.matches(path))).toEqual([])
  })

  test.each([
    ['*.ts', 1],
    ['a/b/*', 3],
    ['{a,b/c}', 2],
    ['a/**', Infinity],
  ])('%j reaches %d deep', (pattern, depth) => {
    expect(parseGlob(pattern).depth).toBe(depth)
  })

  test.each([
    ['', 'glob: must not be empty'],
    ['/a', "glob: '/a' begins with /; it is matched against the path below the folder"],
    ['a//b', "glob: 'a//b' has an empty name, . or .. in it, which no path below a folder has"],
    ['../a', "glob: '../a' has an empty name, . or .. in it, which no path below a folder has"],
    ['{a', "glob: '{a' has a { without its }"],
    ['{}', "glob: '{}' stands for an empty pattern"],
    ['a\\', "glob: 'a\\' ends in a backslash"],
    ['{1,2,3,4}{1,2,3,4}{1,2,3,4}{1,2}', "glob: '{1,2,3,4}{1,2,3,4}{1,2,3,4}{1,2}' stands for more than 64 patterns"],
    [`{a,b,c,d}${'x'.repeat(600)}`, expect.stringContaining('stands for patterns of 2404 characters; at most 2048 are possible')],
  ])('%j is refused by name', (pattern, message) => {
    expect(refusalOf(() => parseGlob(pattern))).toEqual(['invalid', message])
  })

  test('that would make a backtracking matcher hang is done at once', () => {
    const glob = parseGlob(`${'*a'.repeat(30)}b`)
    const started = performance.now()
    expect(glob.matches('a'.repeat(3000))).toBe(false)
    expect(parseGlob(`${'**/a/'.repeat(20)}b`).matches(`${'a/'.repeat(1500)}c`)).toBe(false)
    // The other kind takes longer than anyone waits.
    expect(performance.now() - started).toBeLessThan(20_000)
  })
})
