import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { markedSnippets, matchesShown, pagesOf, type Snippet } from './snippets.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const snippets = pagesOf(root).flatMap((page) => markedSnippets(root, page, 'runnable'))
const examples = existsSync(join(root, 'examples')) ? readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.mjs')) : []

/** A folder of a reader: `import 'glovebox'` and the command `glovebox` mean this tree. */
let reader: string

beforeAll(() => {
  reader = mkdtempSync(join(tmpdir(), 'glovebox-reader-'))
  for (const folder of ['node_modules', 'bin']) mkdirSync(join(reader, folder))
  symlinkSync(root, join(reader, 'node_modules/glovebox'))
  symlinkSync(join(root, 'dist/cli/main.js'), join(reader, 'bin/glovebox'))
})
afterAll(() => rmSync(reader, { recursive: true, force: true }))

function run(file: string, args: readonly string[]) {
  const env = { ...process.env, PATH: `${join(reader, 'bin')}:${process.env['PATH'] ?? ''}`, GLOVEBOX_KEY_DIR: join(reader, 'keys') }
  return spawnSync(file, args, { cwd: reader, env, encoding: 'utf8', timeout: 110_000 })
}

function runSnippet(snippet: Snippet) {
  if (snippet.language === 'sh') return run('sh', ['-e', '-c', snippet.code])
  const file = join(reader, 'snippet.mjs')
  writeFileSync(file, snippet.code)
  return run(process.execPath, [file])
}

describe('the documents', () => {
  it('have snippets that are run', () => {
    expect(snippets.length).toBeGreaterThan(0)
  })

  it.each(snippets.map((snippet) => [snippet.place, snippet] as const))('%s works as it stands', (_place, snippet) => {
    const result = runSnippet(snippet)
    expect({ code: result.status, stderr: result.stderr, stdout: result.stdout }, `${result.stdout}${result.stderr}`).toMatchObject({ code: 0 })
    if (snippet.shown !== undefined && !matchesShown(result.stdout, snippet.shown)) expect(result.stdout).toBe(snippet.shown)
  })

  it.each(examples)('examples/%s works as it stands', (name) => {
    const result = run(process.execPath, [join(root, 'examples', name)])
    expect({ code: result.status, stderr: result.stderr, stdout: result.stdout }, `${result.stdout}${result.stderr}`).toMatchObject({ code: 0 })
    expect(result.stdout).not.toBe('')
  })
})

describe('a shown output', () => {
  it.each([
    ['42\n', '42\n', true],
    ['took 3.1 ms (of 10)\n', 'took … ms (of 10)\n', true],
    ['43\n', '42\n', false],
    ['42\nand more\n', '42\n', false],
  ])('%j against %j', (printed, shown, same) => {
    expect(matchesShown(printed, shown)).toBe(same)
  })
})
