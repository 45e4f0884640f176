import { spawnSync } from 'node:child_process'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { root, withTree } from './fixture.js'

interface ListedCheck {
  readonly name: string
  readonly argv: readonly string[]
}

// Each runs a whole tool, which takes its time on a busy machine.
vi.setConfig({ testTimeout: 600_000 })

const { checks } = (await import(new URL('../../scripts/checks/list.mjs', import.meta.url).href)) as { checks: readonly ListedCheck[] }
const settings = [
  'package.json',
  'knip.json',
  'biome.json',
  'eslint.config.js',
  'tsconfig.json',
  'test/tsconfig.json',
  'scripts/tsconfig.json',
  'vitest.config.ts',
  '.gitignore',
]

const tree: Readonly<Record<string, string>> = {
  ...Object.fromEntries(settings.map((path) => [path, readFileSync(join(root, path), 'utf8')])),
  'src/index.ts': "export { answer } from './contract/answer.js'\n",
  'src/contract/answer.ts': 'export function answer(): number {\n  return 42\n}\n',
  'src/cli/main.ts': "import { answer } from '../index.js'\n\nprocess.exitCode = answer()\n",
  'src/conformance/index.ts': "export { answer } from '../contract/answer.js'\n",
  'scripts/build.mjs': "process.stdout.write('done')\n",
}

/** Runs a tool's check exactly as it is listed, with the project's own settings, over a small tree of its own. */
function run(name: string, planted: Readonly<Record<string, string>>): Promise<{ readonly code: number | null; readonly output: string }> {
  const [file = '', ...args] = checks.find((check) => check.name === name)?.argv ?? []
  return withTree({ ...tree, ...planted }, (folder) => {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    spawnSync('git', ['init', '-q'], { cwd: folder })
    const { status, stdout, stderr } = spawnSync(join(root, file), args, { cwd: folder, encoding: 'utf8' })
    return { code: status, output: stdout + stderr }
  })
}

describe.each([
  ['format', 'a double-quoted string', { 'src/contract/answer.ts': 'export function answer(): string {\n  return "42";\n}\n' }, /answer\.ts/],
  ['lint', 'a promise nobody awaits', { 'src/cli/main.ts': "import { answer } from '../index.js'\n\nPromise.resolve(answer())\n" }, /no-floating-promises/],
  ['lint', 'a default export', { 'src/contract/more.ts': 'export default 42\n' }, /export by name/],
  ['types of src', 'a wrong type', { 'src/contract/answer.ts': "export function answer(): number {\n  return '42'\n}\n" }, /TS2322/],
  ['types of test', 'a wrong type in a test', { 'test/answer.ts': "export const answer: number = '42'\n" }, /TS2322/],
  ['types of scripts', 'a wrong type in a script', { 'scripts/build.mjs': "/** @type {number} */\nexport const answer = '42'\n" }, /TS2322/],
  ['unused', 'an export nobody uses', { 'src/contract/answer.ts': `${tree['src/contract/answer.ts'] ?? ''}\nexport const question = 6 * 9\n` }, /question/],
  ['unused', 'a file nobody uses', { 'src/contract/forgotten.ts': 'export const forgotten = 1\n' }, /forgotten\.ts/],
])('the check %s', (name, what, planted, message) => {
  it(`catches ${what}`, async () => {
    const caught = await run(name, planted)
    expect(caught.output).toMatch(message)
    expect(caught.code).not.toBe(0)
  })
})

describe('the tools', () => {
  it.each(['format', 'lint', 'types of src', 'types of scripts'])('find nothing where there is nothing: %s', async (name) => {
    expect(await run(name, {})).toMatchObject({ code: 0 })
  })
})
