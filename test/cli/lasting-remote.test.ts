/** The command line on a server elsewhere: a real one, on the loopback, with a key. */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { localActor, openLedger } from '../../src/ledger.js'
import { type CliResult, cli, cliPath, exitCodeOf, parseAs, startCli } from './cli.js'
import { until } from './lasting.js'
import { canPause, isBwrapReady } from './machine.js'

const top = mkdtempSync(join(tmpdir(), 'glovebox-remote-'))
const state = join(top, 'server')
let server: ChildProcess
let env: Readonly<Record<string, string>>

const remote = (
  args: readonly string[],
  options: { readonly input?: string | Uint8Array; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<CliResult> => cli(args, { ...options, env: { ...env, ...options.env } })

async function freePort(): Promise<number> {
  const listener = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => listener.once('listening', resolve))
  const { port } = listener.address() as AddressInfo
  await new Promise((resolve) => listener.close(resolve))
  return port
}

describe.skipIf(!isBwrapReady)('GLOVEBOX_URL and GLOVEBOX_KEY', () => {
  beforeAll(async () => {
    mkdirSync(state, { mode: 0o700 })
    const port = await freePort()
    const ledger = await openLedger({ folder: state })
    const { secret } = await ledger.keys.create({ tenant: 'default', scopes: ['run', 'read'] }, localActor)
    await ledger[Symbol.asyncDispose]()
    server = spawn(process.execPath, [cliPath, 'serve', '--quiet', '--state', state, '--listen', `127.0.0.1:${port}`], { stdio: 'ignore' })
    env = { GLOVEBOX_URL: `http://127.0.0.1:${port}`, GLOVEBOX_KEY: secret, NO_COLOR: '1' }
    await until(async () => (await remote(['ls'])).code === 0, 'the server', 60_000)
  })

  afterAll(async () => {
    server.kill('SIGTERM')
    await exitCodeOf(server)
    rmSync(top, { recursive: true, force: true })
  })

  test('run, code and their files are of the server', async () => {
    expect(await remote(['run', '-q', '--', 'sh', '-c', 'tr a-z A-Z; exit 5'], { input: 'piped' })).toMatchObject({ code: 5, stdout: 'PIPED', stderr: '' })
    expect(await remote(['code', '-q', '-c', '6 * 7'])).toMatchObject({ code: 0, stdout: '42\n' })
    writeFileSync(join(top, 'up'), 'sent\n')
    expect((await remote(['run', '-q', '--upload', join(top, 'up'), '--download', `up:${join(top, 'down')}`, '--', 'true'])).code).toBe(0)
    expect(readFileSync(join(top, 'down'), 'utf8')).toBe('sent\n')
    expect((await remote(['ls', '-q'])).stdout).toBe('')
  })

  test.each([
    ['run', '-q', '--', 'sleep', '100'],
    ['code', '-q', '-c', 'import time; time.sleep(100)'],
  ])('%s that is killed leaves no sandbox there', async (...args) => {
    const live = async (): Promise<number> => {
      const answer = await fetch(`${env.GLOVEBOX_URL}/v1/sandboxes`, { headers: { authorization: `Bearer ${env.GLOVEBOX_KEY}` } })
      return ((await answer.json()) as { readonly items: readonly unknown[] }).items.length
    }
    expect(await live()).toBe(0)
    const killed = startCli(args, env)
    await until(async () => (await live()) === 1, 'its sandbox', 30_000)
    killed.kill('SIGKILL')
    await until(async () => (await live()) === 0, 'the end of its sandbox', 20_000)
  })

  test('and so are sandboxes that last, with every command', async () => {
    const id = (await remote(['create', '-q', '--name', 'far'])).stdout.trim()
    expect(id).toMatch(/^[a-z0-9]{20}$/)
    expect((await remote(['exec', '-d', '--tag', 'web', 'far', '--', 'python3', '-m', 'http.server', '8000'])).code).toBe(0)
    const address = (await remote(['url', '--wait', '--', 'far', '8000'])).stdout.trim()
    expect(address).toContain(env.GLOVEBOX_URL)
    expect((await fetch(address)).status).toBe(200)
    await until(async () => (await remote(['logs', 'far', 'web'])).stderr.includes('GET /'), 'a line of its log')
    expect((await remote(['cp', '-', 'far:in'], { input: 'x' })).code).toBe(0)
    expect((await remote(['cp', 'far:in', '-'])).stdout).toBe('x')
    // Where nothing can be paused, that is said and nothing is.
    expect((await remote(['pause', 'far'])).code).toBe(canPause ? 0 : 125)
    if (canPause) expect((await remote(['resume', 'far'])).code).toBe(0)
    const fork = (await remote(['fork', 'far'])).stdout.trim()
    expect((await remote(['exec', fork, '--', 'cat', 'in'])).stdout).toBe('x')
    expect((await remote(['stats', '--json'])).stdout).toContain(id)
    expect((await remote(['info', 'far'])).stdout).toContain(id)
    expect(parseAs<{ removed: string[] }>((await remote(['rm', '--all', '--json'])).stdout).removed.sort()).toEqual([id, fork].sort())
  })

  test("the policy of this machine's operator holds there too", async () => {
    const policy = join(top, 'policy.json')
    writeFileSync(policy, JSON.stringify({ name: 'house', ceiling: { limits: { memory: '64m' } } }))
    const { code, stderr } = await remote(['run', '-m', '128m', '--', 'true'], { env: { GLOVEBOX_POLICY: policy } })
    expect({ code, said: stderr.includes('--memory') && stderr.includes("'house'") }, stderr).toEqual({ code: 125, said: true })
  })

  test.each([
    ['a wrong key', { GLOVEBOX_KEY: 'gbx_wrong' }, /key/],
    ['a server that is not there', { GLOVEBOX_URL: 'http://127.0.0.1:9' }, /cannot be reached/],
    ['an address that is none', { GLOVEBOX_URL: 'nonsense' }, /GLOVEBOX_URL: expected an address/],
  ])('%s is told, with 125', async (_, wrong, message) => {
    for (const args of [['run', '--', 'true'], ['ls'], ['create']]) {
      const { code, stdout, stderr } = await remote(args, { env: wrong })
      expect({ code, stdout }).toEqual({ code: 125, stdout: '' })
      expect(stderr).toMatch(message)
      expect(stderr).not.toContain(env.GLOVEBOX_KEY)
    }
  })

  test('--here and --mount are of this machine, and refused', async () => {
    expect((await remote(['run', '--here', '--', 'true'])).stderr).toContain('GLOVEBOX_URL names another')
    expect((await remote(['run', '--mount', top, '--', 'true'])).stderr).toContain('--mount')
  })
})
