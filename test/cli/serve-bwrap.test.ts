/** A stranger's path: what README.md and docs/server.md say to type, with the real program and real cells. */
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { markedSnippets, matchesShown, type Snippet } from '../docs/snippets.js'
import { cli, cliPath, collect, startCli } from './cli.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const snippets = ['README.md', 'docs/server.md'].flatMap((page) => markedSnippets(root, page, 'served'))

/** Beside what a page shows: what the answers must hold, for blocks that print ids and times. */
const holds: readonly (readonly [of: string, ...parts: string[]])[] = [
  ['text/event-stream', 'event: begun', 'event: stdout', 'event: ended'],
  ['glovebox create --name far', '42\n', 'far  '],
  ['?agent=docs', '"stdout":"kept"', '"text/plain":"42"', '"url":"http://', '"agent":"docs"', 'glovebox-receipt/1', '{"closed":1}'],
]

describe('a stranger', () => {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-stranger-'))
  const state = { GLOVEBOX_SERVER_DIR: join(folder, 'state') }
  let server: ChildProcessWithoutNullStreams
  let ended: ReturnType<typeof collect>
  let env: { readonly GLOVEBOX_URL: string; readonly GLOVEBOX_KEY: string }
  let said = ''

  beforeAll(async () => {
    for (const name of ['node_modules', 'bin']) mkdirSync(join(folder, name))
    symlinkSync(root, join(folder, 'node_modules/glovebox'))
    symlinkSync(cliPath, join(folder, 'bin/glovebox'))
    server = startCli(['serve', '--listen', '127.0.0.1:0', '--grace', '2s'], state)
    server.stderr.on('data', (piece: Buffer) => {
      said += piece.toString()
    })
    ended = collect(server)
    await vi.waitFor(() => expect(said).toMatch(/listening at http:\/\/127\.0\.0\.1:\d+\n/), { timeout: 20_000 })
    const created = await cli(['keys', 'create'], { env: state })
    env = { GLOVEBOX_URL: /http:\/\/[\d.:]+/.exec(said)?.[0] ?? '', GLOVEBOX_KEY: created.stdout.trim() }
  })
  afterAll(async () => {
    server.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })

  const run = (file: string, args: readonly string[]) =>
    spawnSync(file, args, {
      env: { ...process.env, ...env, PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}` },
      encoding: 'utf8',
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 100_000,
    })
  const runSnippet = ({ language, code }: Snippet) => {
    if (language === 'sh') return run('bash', ['--norc', '-euo', 'pipefail', '-c', code])
    writeFileSync(join(folder, 'snippet.mjs'), code)
    return run(process.execPath, ['snippet.mjs'])
  }

  test('is told where it listens, and how to make a key', () => {
    expect(said).toContain('keys create')
    expect(env.GLOVEBOX_KEY).toMatch(/^gbx_\S{30,}$/)
  })

  test.each(snippets.map((snippet) => [snippet.place, snippet] as const))('finds that %s works as it stands', (_place, snippet) => {
    const { status, stdout, stderr } = runSnippet(snippet)
    expect({ status, stdout, stderr }, `${stdout}${stderr}`).toMatchObject({ status: 0 })
    const wanted = holds.find(([of]) => snippet.code.includes(of))
    if (wanted === undefined && snippet.shown === undefined) expect(stdout).toMatch(/\S/)
    for (const part of wanted?.slice(1) ?? []) expect(stdout).toContain(part)
    if (snippet.shown !== undefined && !matchesShown(stdout, snippet.shown)) expect(stdout).toBe(snippet.shown)
  })

  test('finds nothing in the documents that was not tried', () => {
    expect(snippets.map(({ place, language }) => [place.split(':')[0], language])).toEqual([
      ['README.md', 'sh'],
      ['README.md', 'sh'],
      ['README.md', 'js'],
      ['docs/server.md', 'sh'],
      ['docs/server.md', 'js'],
      ['docs/server.md', 'sh'],
      ['docs/server.md', 'sh'],
      ['docs/server.md', 'sh'],
    ])
  })

  test('uses files and code with the library from afar', () => {
    const code = `
      import { Sandbox } from 'glovebox'
      const sandbox = await Sandbox.create()
      await sandbox.files.write('a.txt', 'far')
      console.log((await sandbox.run(['cat', 'a.txt'])).stdout)
      console.log((await sandbox.code('6 * 7')).text)
      await sandbox.close()`
    const { status, stdout, stderr } = runSnippet({ place: '', language: 'js', code, shown: undefined })
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'far\n42\n', stderr: '' })
  })

  test('uses the command line from afar, and what it made is gone', async () => {
    const ran = await cli(['run', '-q', '--', 'sh', '-c', 'echo out; echo err >&2; exit 3'], { env })
    expect([ran.code, ran.stdout, ran.stderr]).toEqual([3, 'out\n', 'err\n'])
    expect((await cli(['run', '--', 'tr', 'a-z', 'A-Z'], { env, input: 'piped' })).stdout).toBe('PIPED')
    expect((await cli(['code', '-c', 'sum(range(10))'], { env })).stdout).toBe('45\n')
    const { stdout } = run('curl', ['-s', '-H', `authorization: Bearer ${env.GLOVEBOX_KEY}`, `${env.GLOVEBOX_URL}/v1/sandboxes`])
    expect(JSON.parse(stdout)).toEqual({ items: [] })
  })

  test('is told in one line that a key is wrong, or that nobody serves', async () => {
    const wrong = await cli(['run', '--', 'true'], { env: { ...env, GLOVEBOX_KEY: 'gbx_wrong' } })
    expect([wrong.code, wrong.stderr]).toEqual([125, expect.stringMatching(/^glovebox: .*key/)])
    const nobody = await cli(['run', '--', 'true'], { env: { ...env, GLOVEBOX_URL: 'http://127.0.0.1:1' } })
    expect([nobody.code, nobody.stderr]).toEqual([125, expect.stringContaining('cannot be reached')])
  })

  test('stops it: what is under way ends, and its sandboxes are closed', async () => {
    const asking = `curl -s "$GLOVEBOX_URL/v1/runs" -H "authorization: Bearer $GLOVEBOX_KEY" -H 'content-type: application/json'`
    const running = run('bash', ['--norc', '-c', `${asking} -d '{"command":["sh","-c","sleep 0.7; echo done"]}' & sleep 0.4; kill -TERM ${server.pid}; wait`])
    expect(running.stdout).toContain('"stdout":"done\\n"')
    expect((await ended).code).toBe(0)
  })
})
