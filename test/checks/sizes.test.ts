import { describe, expect, it } from 'vitest'
import { problemsOf, verdictOf, lines } from './fixture.js'

const cFunction = (body: number) => `static int answer(int a)\n{\n${lines(body, '  a++; /* } */')}  return a;\n}\n`
const pythonFunction = (body: number) => `def answer(a):\n${lines(body, '    a += 1')}\n\nprint(answer(1))\n`

const check = { script: 'scripts/checks/sizes.mjs', name: 'sizeProblems' }

describe('the size check', () => {
  it('passes what is within every limit', async () => {
    const tree = {
      'src/a.ts': `export function f(a: number, b: string, c: { on: boolean }) {\n${lines(48, '  void a')}}\n`,
      'src/long.ts': lines(300, '//'),
      'src/assertion.ts': 'export function ensure(holds: boolean, why: string): asserts holds {\n  if (!holds) throw new Error(why)\n}\n',
      'warden/a.c': cFunction(46),
      'warden/table.c': `static const struct row rows[] = {\n${lines(80, '  { 1, "}" },')}};\n`,
      'runtimes/a.py': pythonFunction(49),
      'test/anything.ts': lines(400, '//'),
    }
    expect(await problemsOf(check, tree)).toEqual([])
  })

  it.each([
    ['a long file', { 'src/a.ts': lines(301, '//') }, 'src/a.ts:301: the file has 301 lines, and 300 are the limit'],
    ['a long file in web', { 'web/a.css': lines(301, '/* */') }, 'web/a.css:301: the file has 301 lines, and 300 are the limit'],
    ['a long function', { 'src/a.ts': `\nexport function f() {\n${lines(49)}}\n` }, 'src/a.ts:2: f has 51 lines, and 50 are the limit'],
    ['a long arrow function', { 'src/a.ts': `export const f = () => {\n${lines(49)}}\n` }, 'src/a.ts:1: f has 51 lines, and 50 are the limit'],
    ['a long method', { 'src/a.ts': `export class A {\n  m() {\n${lines(49)}}\n}\n` }, 'src/a.ts:2: m has 51 lines, and 50 are the limit'],
    ['a long function in C', { 'warden/a.c': cFunction(47) }, 'warden/a.c:1: answer has 51 lines, and 50 are the limit'],
    ['a long function in Python', { 'runtimes/a.py': pythonFunction(50) }, 'runtimes/a.py:1: answer has 51 lines, and 50 are the limit'],
    [
      'four positional parameters',
      { 'src/a.ts': 'export function f(a: number, b: number, c: number, d: number) { return a + b + c + d }\n' },
      'src/a.ts:1: f has 4 positional parameters, and 3 are the limit',
    ],
    [
      'a boolean position',
      { 'src/a.ts': 'export function f(a: number, on?: boolean) { return on ? a : 0 }\n' },
      'src/a.ts:1: f takes the boolean on by position; name it in an options object',
    ],
    [
      'a boolean position in an interface',
      { 'src/a.ts': 'export interface A {\n  f(on: boolean | undefined): void\n}\n' },
      'src/a.ts:2: f takes the boolean on by position; name it in an options object',
    ],
    [
      'a boolean default',
      { 'src/a.ts': 'export const f = (on = true) => on\n' },
      'src/a.ts:1: f takes the boolean on by position; name it in an options object',
    ],
  ])('catches %s', async (_what, tree, problem) => {
    expect(await problemsOf(check, tree)).toEqual([problem])
  })

  it('ends with 1 and a line for each problem when it is run', () => {
    expect(verdictOf(check, { 'src/a.ts': '//\n' })).toEqual({ code: 0, output: '' })
    expect(verdictOf(check, { 'src/a.ts': lines(301, '//') })).toEqual({ code: 1, output: 'src/a.ts:301: the file has 301 lines, and 300 are the limit\n' })
  })
})
