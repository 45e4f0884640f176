import { describe, expect, test } from 'vitest'
import { isWhole } from '../../src/cli/code-completeness.js'
import { numbered, safeName } from '../../src/cli/code-names.js'
import { OutFolder } from '../../src/cli/code-out.js'
import { tracebackText } from '../../src/cli/code-traceback.js'
import { colorsFor } from '../../src/cli/print.js'
import { imageProtocol, inlineImage } from '../../src/cli/terminal-image.js'
import type { Language } from '../../src/contract/code.js'

describe('whether code goes on in the next line', () => {
  const cases: readonly (readonly [Language, string, boolean])[] = [
    ['python', '1 + 1', true],
    ['python', 'if x:', false],
    ['python', 'if x:\n    y', false],
    ['python', 'if x:\n    y\n', true],
    ['python', 'f(1,', false],
    ['python', 'f(1,\n2)', true],
    ['python', 's = """a', false],
    ['python', 's = """a\nb"""', true],
    ['python', 's = "("', true],
    ['python', 'x = 1 # (', true],
    ['python', 'x = 1 + \\', false],
    ['python', '@cached', false],
    ['python', 'd = {1: 2}', true],
    ['python', 'print("a:")', true],
    ['python', '', true],
    ['javascript', 'const f = () => {', false],
    ['javascript', 'const f = () => {\n}', true],
    ['javascript', '`a ${b', false],
    ['javascript', '`a ${b}`', true],
    ['javascript', '`(`', true],
    ['javascript', 'x = /[(]/', true],
    ['javascript', '"{"', true],
    ['javascript', '// {', true],
    ['javascript', '/* a', false],
    ['javascript', 'x =', false],
    ['javascript', 'i++', true],
    ['typescript', 'const x: Array<{ a: number }> = [', false],
    ['bash', 'echo hi', true],
    ['bash', 'if true; then', false],
    ['bash', 'if true; then\necho\nfi', true],
    ['bash', 'for i in 1 2; do', false],
    ['bash', 'for i in 1 2', false],
    ['bash', 'for i in 1 2; do echo $i; done', true],
    ['bash', 'while read x; do\necho; done < f', true],
    ['bash', 'cat <<EOF', false],
    ['bash', 'cat <<EOF\nhi (\nEOF', true],
    ['bash', 'cat <<-\tEOF', false],
    ['bash', 'echo "a', false],
    ['bash', "echo 'a\nb'", true],
    ['bash', 'echo a |', false],
    ['bash', 'true &&', false],
    ['bash', 'echo a \\', false],
    ['bash', 'case x in', false],
    ['bash', 'case x in a) echo;; esac', true],
    ['bash', 'f() {', false],
    ['bash', 'f() { echo; }', true],
    ['bash', 'echo done if fi', true],
    ['bash', 'x=$(echo', false],
    ['bash', 'cat <<< word', true],
  ]
  test.each(cases)('%s %j: %s', (language, text, whole) => {
    expect(isWhole({ text, isPasted: false }, language)).toBe(whole)
  })

  test('a pasted block of Python waits for no blank line, but for its brackets', () => {
    expect(isWhole({ text: 'if x:\n    y', isPasted: true }, 'python')).toBe(true)
    expect(isWhole({ text: 'f(\n1,', isPasted: true }, 'python')).toBe(false)
  })
})

describe('names of files that come out', () => {
  test.each([
    ['a.png', 'a.png'],
    ['../../etc/passwd', '__.._etc_passwd'],
    ['/etc/passwd', '_etc_passwd'],
    ['a\u0000b\n.txt', 'a_b_.txt'],
    ['--force', '_force'],
    ['..', '_'],
    ['', 'file'],
    ['NUL.txt', '_NUL.txt'],
    ['a. ', 'a_'],
    ['ü.csv', 'ü.csv'],
  ])('%j becomes %j', (name, safe) => {
    expect(safeName(name)).toBe(safe)
  })

  test('are short, with their ends kept, and numbered before them', () => {
    expect(Buffer.byteLength(safeName(`${'ä'.repeat(300)}.parquet`))).toBeLessThanOrEqual(120)
    expect(safeName(`${'ä'.repeat(300)}.parquet`)).toMatch(/ä\.parquet$/)
    expect([numbered('a.b.png', 2), numbered('plain', 3), numbered('x', 1)]).toEqual(['a.b-2.png', 'plain-3', 'x'])
  })
})

describe('a picture in a terminal', () => {
  const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(9000, 1)])
  test.each([
    [{ KITTY_WINDOW_ID: '1', TERM: 'xterm-kitty' }, 'kitty'],
    [{ TERM: 'xterm-ghostty' }, 'kitty'],
    [{ TERM_PROGRAM: 'iTerm.app' }, 'iterm2'],
    [{ TERM_PROGRAM: 'WezTerm', NO_COLOR: '1' }, 'iterm2'],
    [{ TERM: 'xterm-256color' }, undefined],
    [{ KITTY_WINDOW_ID: '1', TERM: 'tmux-256color' }, undefined],
    [{ TERM_PROGRAM: 'iTerm.app', TMUX: '/tmp/x' }, undefined],
  ])('with %j is shown by %s', (env, protocol) => {
    expect(imageProtocol({ isTerminal: true, env })).toBe(protocol)
    expect(imageProtocol({ isTerminal: false, env })).toBeUndefined()
  })

  test('goes to kitty in pieces that together are the picture', () => {
    const shown = inlineImage(png, 'kitty') ?? ''
    const pieces = [...shown.matchAll(/\x1b_G([^;]*);([^\x1b]*)\x1b\\/g)]
    expect(pieces.map(([, keys]) => keys)).toEqual(['a=T,f=100,q=2,m=1', 'm=1', 'm=0'])
    expect(pieces.every(([, , data = '']) => data.length <= 4096)).toBe(true)
    expect(Buffer.from(pieces.map(([, , data]) => data).join(''), 'base64').equals(png)).toBe(true)
  })

  test('goes to iTerm2 whole, and what is no picture goes nowhere', () => {
    expect(inlineImage(png, 'iterm2')).toBe(`\x1b]1337;File=inline=1;size=${png.length};preserveAspectRatio=1:${png.toString('base64')}\x07\n`)
    expect(inlineImage(Buffer.from('\x1b]0;evil\x07'), 'iterm2')).toBeUndefined()
    expect(inlineImage(Buffer.from('ffd8ff00', 'hex'), 'kitty')).toBeUndefined()
  })
})

test('a traceback cannot act on a terminal', () => {
  const error = { name: 'ValueError', value: 'x', traceback: 'Traceback:\n  File "a", line 1\n\t\x1b]0;title\x07\nValueError: x', fullTraceback: '' }
  expect(tracebackText(error, colorsFor({ isTTY: false }))).toBe('Traceback:\n  File "a", line 1\n\t\\x1b]0;title\\x07\nValueError: x\n')
  expect(tracebackText({ ...error, name: 'ExitStatus' }, colorsFor({ isTTY: false }))).toBeUndefined()
})

test('a folder for --out where none can be made is refused at once', () => {
  for (const folder of ['/proc/none', '/proc/none/below'])
    expect(() => new OutFolder(folder, { force: false })).toThrow(`--out: ${folder} cannot be made: ENOENT`)
})
