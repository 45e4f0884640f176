import { describe, expect, it } from 'vitest'
import { problemsOf, verdictOf } from './fixture.js'

const row = '| `busy` | 429 | 125 | yes | try later |'
const tree = {
  'package.json': '{ "version": "1.2.3" }\n',
  'CHANGELOG.md': '# Changes\n\n## [1.2.3] - 2026-01-01\n',
  'README.md': 'See [the errors](docs/errors.md#busy), [elsewhere](https://example.com) and /workspace.\n\n```md\n[not a link](nowhere.md)\n```\n',
  'docs/errors.md': `| code | HTTP | exit | again | means |\n|---|---|---|---|---|\n${row}\n`,
  'src/contract/errors.ts': "export const errorTable = { busy: { status: 429, exitCode: 125, retryable: true, means: 'try later' } } as const\n",
}

const check = { script: 'scripts/checks/docs.mjs', name: 'docProblems' }

describe('the document check', () => {
  it('passes documents that agree with the code', async () => {
    expect(await problemsOf(check, tree)).toEqual([])
  })

  it.each([
    ['an error nobody documented', { 'docs/errors.md': 'nothing\n' }, `docs/errors.md: lacks the row ${row}`],
    [
      'a documented error that is not there',
      { 'docs/errors.md': `${row}\n| \`lost\` | 500 | 125 | no | gone |\n` },
      'docs/errors.md: lost is not in the error table',
    ],
    ['a row that says something else', { 'docs/errors.md': '| `busy` | 503 | 125 | yes | try later |\n' }, `docs/errors.md: busy must read ${row}`],
    ['a link to nothing', { 'docs/a.md': '[gone](gone.md)\n' }, 'docs/a.md: links to gone.md, which does not exist'],
    ['a version without an entry', { 'CHANGELOG.md': '## [1.2.2]\n' }, 'CHANGELOG.md: has no entry "## [1.2.3]"'],
    ['a path of one machine', { 'src/a.ts': "export const a = '/work/tree'\n" }, 'src/a.ts:1: /work is a path of one machine'],
    ['a number of a tracker', { 'docs/a.md': 'fixed\n\nsee issue #7\n' }, 'docs/a.md:3: issue # is a number of a tracker readers cannot see'],
    [
      'a registry host',
      { 'package-lock.json': '{ "resolved": "https://registry.npmjs.org/a.tgz" }\n' },
      'package-lock.json:1: "resolved": "http is a registry host; everyone has their own',
    ],
  ])('catches %s', async (_what, planted, problem) => {
    expect(await problemsOf(check, { ...tree, ...planted })).toEqual([problem])
  })

  it('ends with 1 and a line for each problem when it is run', () => {
    expect(verdictOf(check, tree)).toEqual({ code: 0, output: '' })
    expect(verdictOf(check, { ...tree, 'CHANGELOG.md': '' })).toEqual({ code: 1, output: 'CHANGELOG.md: has no entry "## [1.2.3]"\n' })
  })
})
