import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SandboxError } from '../../../src/contract/errors.js'
import { parseDockerfile } from '../../../src/templates/images/dockerfile.js'
import { expandText, jsonWords, splitWords } from '../../../src/templates/images/dockerfile-words.js'
import { parseIgnore, readIgnore } from '../../../src/templates/images/dockerignore.js'

function instructions(text: string): unknown[] {
  return parseDockerfile(`FROM base\n${text}`).stages[0]?.instructions.map(({ line: _line, shown: _shown, ...rest }) => rest) ?? []
}

describe('a Dockerfile', () => {
  test('has stages with names, and what is before them is for them', () => {
    const { globals, stages } = parseDockerfile(
      '# syntax=x\nARG V=1\nFROM debian:$V AS Build\nRUN make\n\nFROM --platform=linux/amd64 scratch\nCOPY --from=build /a /b\n',
    )
    expect(globals).toEqual([{ line: 2, shown: 'ARG V=1', rest: 'V=1' }])
    expect(stages.map(({ base, name, line }) => [base, name, line])).toEqual([
      ['debian:$V', 'build', 3],
      ['scratch', undefined, 6],
    ])
    expect(stages[1]?.instructions).toMatchObject([{ type: 'copy', from: 'build', rest: '/a /b', line: 7 }])
  })

  test('may be continued over lines, with comments and empty lines between, by an escape of its own', () => {
    expect(instructions('RUN one \\\n# why\n\n  two \\\n  three\nUSER x')).toEqual([
      { type: 'run', command: { kind: 'shell', text: 'one   two   three' } },
      { type: 'user', rest: 'x' },
    ])
    expect(parseDockerfile('# escape=`\nFROM a\nRUN b `\nc\n').stages[0]?.instructions).toMatchObject([{ command: { text: 'b c' } }])
  })

  test('has commands as one text or as a list, and here-documents', () => {
    expect(
      instructions('RUN ["a", "b c"]\nCMD ["x"]\nENTRYPOINT exec y\nRUN <<EOF\nfirst\n  second\nEOF\nCOPY <<-"END" /to\n\t$x\n\tEND\nSHELL ["/bin/bash","-c"]'),
    ).toEqual([
      { type: 'run', command: { kind: 'argv', argv: ['a', 'b c'] } },
      { type: 'cmd', command: { kind: 'argv', argv: ['x'] } },
      { type: 'entrypoint', command: { kind: 'shell', text: 'exec y' } },
      { type: 'run', command: { kind: 'shell', text: 'first\n  second\n' } },
      { type: 'copy', from: undefined, chmod: undefined, rest: '<<-"END" /to', heredocs: [{ name: 'END', text: '$x\n', isExpanded: false }] },
      { type: 'shell', argv: ['/bin/bash', '-c'] },
    ])
    expect(instructions('RUN cat <<A > x\nin\nA\n')).toEqual([{ type: 'run', command: { kind: 'shell', text: 'cat <<A > x\nin\nA' } }])
  })

  test.each([
    ['RUN x', 'Dockerfile:1: RUN before any FROM'],
    ['', 'Dockerfile:1: there is no FROM in it'],
    ['FROM a b c', 'Dockerfile:1: FROM is followed by an image, and perhaps by AS and a name'],
    ['FROM a\n\nWHAT now', 'Dockerfile:3: WHAT is not understood'],
    ['FROM a\nRUN', 'Dockerfile:2: RUN is followed by nothing'],
    ['FROM a\nRUN --mount=type=secret,id=x cat', 'Dockerfile:2: RUN --mount=type=secret,id=x is not understood; of mounts only caches and tmpfs are'],
    ['FROM a\nRUN --security=insecure x', 'Dockerfile:2: RUN --security=insecure is not done here'],
    ['FROM a\nCOPY --odd=1 a b', 'Dockerfile:2: COPY --odd is not understood'],
    ['FROM a\nCOPY --chmod=u+x a b', 'Dockerfile:2: --chmod=u+x is no number such as 755'],
    ['FROM a\nRUN <<EOF\nx', 'Dockerfile:2: there is no end of what begins with <<EOF'],
    ['FROM a\nONBUILD RUN x', 'Dockerfile:2: ONBUILD is not understood: nothing is built from it by others'],
    ['FROM a\n=x', "Dockerfile:2: '=x' is no instruction"],
    ['FROM a\nSHELL bash', 'Dockerfile:2: SHELL is followed by a list, such as ["/bin/bash", "-c"]'],
  ])('that is wrong is told by its line: %j', (text, message) => {
    expect(() => parseDockerfile(text)).toThrow(expect.objectContaining({ code: 'invalid', message }))
  })

  test('of whatever text is data or an error of ours', () => {
    const line = fc.oneof(
      fc.constantFrom('FROM a', 'RUN x \\', '# c', 'COPY --from=a b c', 'ENV a="b', 'RUN <<E', 'E', 'ARG x', '\\', 'CMD [', 'LABEL a=b\\', "ENV 'x"),
      fc.string({ maxLength: 20 }),
    )
    fc.assert(
      fc.property(fc.array(line, { maxLength: 10 }), (lines) => {
        try {
          parseDockerfile(lines.join('\n'))
        } catch (error) {
          expect(error).toBeInstanceOf(SandboxError)
        }
      }),
      { numRuns: 2000 },
    )
  })
})

describe('words', () => {
  const values: Record<string, string> = { A: 'one', EMPTY: '', SPACE: 'x y' }
  const options = { escape: '\\', lookup: (name: string) => values[name] }

  test.each([
    ['$A ${A}', ['one', 'one']],
    ['"$A b" \'$A b\'', ['one b', '$A b']],
    ['a\\ b \\$A', ['a b', '$A']],
    ['$SPACE', ['x y']],
    ['${NONE:-else} ${A:-else} ${EMPTY:-else} x${EMPTY-else}', ['else', 'one', 'else', 'x']],
    ['${A:+then} x${NONE:+then} x${EMPTY+then}', ['then', 'x', 'xthen']],
    ['${NONE:-$A}', ['one']],
    ['"a\\"b" a"b c"d', ['a"b', 'ab cd']],
    ['$ ${ $9', ['$', '${', '$9']],
    ["it's", ["it's"]],
  ])('%s', (text, words) => {
    expect(splitWords(text, options)).toEqual(words)
  })

  test('without a place to look, variables stay; a list is a list of texts', () => {
    expect(expandText('$A ${B:-c}', { escape: '\\' })).toBe('$A ${B:-c}')
    expect([jsonWords('["a", "b"]'), jsonWords('[1]'), jsonWords('["a"'), jsonWords('a')]).toEqual([['a', 'b'], undefined, undefined, undefined])
  })

  test('of whatever text come to an end', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(splitWords(text, options).join('').length).toBeLessThanOrEqual(text.length * 4 + 10)
      }),
    )
  })
})

describe('a .dockerignore', () => {
  test.each([
    ['node_modules', ['node_modules', 'node_modules/a/b'], ['src/node_modules', 'a']],
    ['**/*.log', ['a.log', 'b/c/d.log'], ['a.logs']],
    ['*.md\n!README.md', ['a.md'], ['README.md', 'a/b.md']],
    ['/build/', ['build', 'build/x'], ['a/build']],
    ['# c\n\n.git', ['.git/config'], ['x.git', 'agit']],
    ['a?c\n[xy]z', ['abc', 'xz'], ['ac', 'zz']],
  ])('%j', (text, out, kept) => {
    const isIgnored = parseIgnore(text)
    expect([out.map(isIgnored), kept.map(isIgnored)]).toEqual([out.map(() => true), kept.map(() => false)])
  })

  test('that means nothing, or is no file, is refused instead of keeping out nothing', () => {
    const refusal = expect.objectContaining({ code: 'invalid', message: expect.stringContaining('.dockerignore') })
    expect(() => parseIgnore('[z-a]\nsecret.env')).toThrow(refusal)
    const folder = mkdtempSync(join(tmpdir(), 'gbx-ignore-'))
    try {
      expect(readIgnore(folder, 'Dockerfile')('a')).toBe(false)
      mkdirSync(join(folder, '.dockerignore'))
      expect(() => readIgnore(folder, 'Dockerfile')).toThrow(refusal)
      rmSync(join(folder, '.dockerignore'), { recursive: true })
      symlinkSync('/dev/zero', join(folder, '.dockerignore'))
      expect(() => readIgnore(folder, 'Dockerfile')).toThrow(refusal)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('with many ** in a row is as quick as with one', () => {
    expect(parseIgnore(`${'**/'.repeat(12)}zzz`)(`${'d/'.repeat(30)}a`)).toBe(false)
  })
})
