/** A stranger's path: the commands of docs/server.md, with the real program and real cells. */
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cli, collect, startCli } from './cli.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(join(root, 'docs/server.md'), 'utf8')
const curls = [...page.matchAll(/```sh curl\n(.*?)```/gs)].map(([, code = '']) => code)

describe('a stranger', () => {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-stranger-'))
  const state = { GLOVEBOX_SERVER_DIR: join(folder, 'state') }
  let server: ChildProcessWithoutNullStreams
  let ended: ReturnType<typeof collect>
  let env: { readonly GLOVEBOX_URL: string; readonly GLOVEBOX_KEY: string }
  let said = ''

  beforeAll(async () => {
    server = startCli(['serve', '--listen', '127.0.0.1:0', '--grace', '2s'], state)
    server.stderr.on('data', (piece: Buffer) => {
      said += piece.toString()
    })
    ended = collect(server)
    await expect.poll(() => said).toMatch(/listening at http:\/\/127\.0\.0\.1:\d+\n/)
    const created = await cli(['keys', 'create'], { env: state })
    env = { GLOVEBOX_URL: /http:\/\/[\d.:]+/.exec(said)?.[0] ?? '', GLOVEBOX_KEY: created.stdout.trim().split('\n').at(-1)?.trim() ?? '' }
  })
  afterAll(async () => {
    server.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })

  const run = (command: readonly string[]) =>
    spawnSync(command[0] ?? '', command.slice(1), { env: { ...process.env, ...env }, encoding: 'utf8', cwd: root, timeout: 100_000 })

  test('is told where it listens, and how to make a key', () => {
    expect(said).toContain('keys create')
    expect(env.GLOVEBOX_KEY).toMatch(/^\S{30,}$/)
  })

  test.each(curls.map((code, index) => [index + 1, code] as const))('finds that the lines for curl in the documents work: %i', (index, code) => {
    const { status, stdout, stderr } = run(['bash', '-euo', 'pipefail', '-c', code])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const expected = [
      ['"stdout":"42\\n"', '"exitCode":0'],
      ['event: begun', 'event: stdout', 'event: ended'],
      ['"stdout":"kept"', 'ke', '"text/plain":"42"', '"url":"http://', '"agent":"docs"', 'glovebox-receipt/1', '{"closed":1}'],
    ]
    for (const part of expected[index - 1] ?? ['no such block']) expect(stdout).toContain(part)
  })

  test('uses the library from afar', () => {
    const code = `
      import { Sandbox, Glovebox } from ${JSON.stringify(join(root, 'dist/index.js'))}
      const platform = Glovebox.connect({ url: process.env.GLOVEBOX_URL, key: process.env.GLOVEBOX_KEY })
      const sandbox = await Sandbox.create({ platform })
      await sandbox.files.write('a.txt', 'far')
      console.log((await sandbox.run(['cat', 'a.txt'])).stdout)
      console.log((await sandbox.code('6 * 7')).text)
      await sandbox.close()
      console.log((await Sandbox.run(['echo', 'by the environment'])).stdout)`
    const { status, stdout, stderr } = run([process.execPath, '--input-type=module', '-e', code])
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'far\n42\nby the environment\n\n', stderr: '' })
  })

  test('uses the command line from afar, and what it made is gone', async () => {
    const ran = await cli(['run', '--', 'sh', '-c', 'echo out; echo err >&2; exit 3'], { env })
    expect([ran.code, ran.stdout, ran.stderr]).toEqual([3, 'out\n', 'err\n'])
    expect((await cli(['run', '--', 'tr', 'a-z', 'A-Z'], { env, input: 'piped' })).stdout).toBe('PIPED')
    expect((await cli(['code', '-c', 'sum(range(10))'], { env })).stdout).toBe('45\n')
    const { stdout } = run(['curl', '-s', '-H', `authorization: Bearer ${env.GLOVEBOX_KEY}`, `${env.GLOVEBOX_URL}/v1/sandboxes`])
    expect(JSON.parse(stdout)).toEqual({ items: [] })
  })

  test('is told in one line that a key is wrong, or that nobody serves', async () => {
    const wrong = await cli(['run', '--', 'true'], { env: { ...env, GLOVEBOX_KEY: 'gbx_wrong' } })
    expect([wrong.code, wrong.stderr]).toEqual([125, expect.stringMatching(/^glovebox: .*key/)])
    const nobody = await cli(['run', '--', 'true'], { env: { ...env, GLOVEBOX_URL: 'http://127.0.0.1:1' } })
    expect([nobody.code, nobody.stderr]).toEqual([125, expect.stringContaining('cannot be reached')])
  })

  test('stops it: what is under way ends, and its sandboxes are closed', async () => {
    const running = run([
      'bash',
      '-c',
      `curl -s "$GLOVEBOX_URL/v1/runs" -H "authorization: Bearer $GLOVEBOX_KEY" -H 'content-type: application/json' -d '{"command":["sh","-c","sleep 0.7; echo done"]}' & sleep 0.4; kill -TERM ${server.pid}; wait`,
    ])
    expect(running.stdout).toContain('"stdout":"done\\n"')
    expect((await ended).code).toBe(0)
  })
})
