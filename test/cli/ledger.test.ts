import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cliPath, collect, startCli } from './cli.js'

let home: string
let env: Readonly<Record<string, string>>
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'glovebox-ledger-cli-'))
  mkdirSync(join(home, 'keys'), { mode: 0o700 })
  env = { GLOVEBOX_SERVER_DIR: join(home, 'server'), GLOVEBOX_KEY_DIR: join(home, 'keys') }
})
afterAll(() => rmSync(home, { recursive: true }))

const run = async (...args: string[]) => {
  const child = startCli(args, env)
  child.stdin.end()
  return collect(child)
}
const json = async (...args: string[]): Promise<unknown> => JSON.parse((await run(...args, '--json')).stdout)

const helps = [
  ...[['keys'], ['keys', 'create'], ['keys', 'ls'], ['keys', 'revoke']],
  ...[['tenants'], ['tenants', 'create'], ['tenants', 'ls'], ['tenants', 'set'], ['tenants', 'rm']],
  ...[['audit'], ['audit', 'ls'], ['audit', 'tail'], ['audit', 'verify'], ['audit', 'export'], ['audit', 'head'], ['audit', 'prune']],
].map((args) => [`${args.join('-')}-help`, args] as const)

describe('help', () => {
  test.each(helps)('%s is what its golden file says, within 80 columns', async (name, args) => {
    const { code, stdout, stderr } = await run(...args, '--help')
    expect([code, stderr, stdout.split('\n').filter((line) => line.length > 80)]).toEqual([0, '', []])
    await expect(stdout).toMatchFileSnapshot(`golden/${name}.txt`)
  })
})

describe('where nothing was made yet', () => {
  test('lists are empty and nothing is made by asking', async () => {
    for (const args of [
      ['keys', 'ls'],
      ['tenants', 'ls'],
      ['audit', 'ls'],
    ])
      expect(await run(...args)).toMatchObject({ code: 0, stdout: '', stderr: '' })
    expect(await run('audit', 'verify')).toMatchObject({ code: 125 })
    expect(readdirSync(home)).toEqual(['keys'])
  })
})

describe('keys, tenants and the audit trail', () => {
  test('a key is printed alone, listed without itself, and revoked', async () => {
    const made = await run('keys', 'create', '--name', 'ci \u202etest', '--expires', '30d')
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^gbx_[a-z0-9]{12}_[A-Za-z0-9]{43}\n$/) as string })
    expect(made.stderr).toContain('it is shown this once')
    const id = made.stdout.slice(4, 16)
    const listed = await run('keys', 'ls')
    expect(listed.stdout).toContain(`${id}  default       run`)
    expect(listed.stdout).not.toContain('\u202e')
    expect(listed.stdout).not.toContain(made.stdout.slice(17).trim())
    expect((await run('keys', 'revoke', id)).code).toBe(0)
    expect(await run('keys', 'revoke', id)).toMatchObject({ code: 1, stderr: expect.stringContaining('no key') as string })
    expect(await json('keys', 'ls')).toEqual({ keys: [] })
    expect(await json('keys', 'ls', '--all')).toMatchObject({ keys: [{ id, scopes: ['run'], tenant: 'default' }] })
    expect(statSync(join(home, 'server')).mode & 0o777).toBe(0o700)
    for (const name of readdirSync(join(home, 'server'))) expect([name, statSync(join(home, 'server', name)).mode & 0o777]).toEqual([name, 0o600])
  })

  test('a tenant is made with quotas, changed one by one, and removed', async () => {
    expect(await json('tenants', 'create', 'acme', '--sandboxes', '5', '--memory', '4g', '--egress', '1g', '--policy', 'strict')).toMatchObject({
      id: 'acme',
      policy: 'strict',
      quotas: { sandboxes: 5, memory: 4 * 2 ** 30, egressPerDay: 2 ** 30 },
    })
    expect(await json('tenants', 'set', 'acme', '--memory', 'none', '--creates', '60', '--policy', 'none', '--audit-code', 'hash')).toEqual({
      id: 'acme',
      quotas: { sandboxes: 5, egressPerDay: 2 ** 30, createsPerMinute: 60 },
      audit: { code: 'hash', env: 'names', receipts: 'asked' },
      createdAt: expect.any(String) as string,
    })
    expect((await run('tenants', 'ls')).stdout).toBe('acme            sandboxes 5, creates 60, egress 1 GiB, audit by hash\ndefault         no quotas\n')
    expect((await run('tenants', 'rm', 'acme')).code).toBe(0)
    expect((await run('tenants', 'rm', 'acme')).code).toBe(1)
  })

  test.each([
    [['keys', 'create', '--scope', 'root'], 'scopes', 'glovebox keys create --help'],
    [['keys', 'create', '--expires', 'soon'], '--expires', 'glovebox keys create --help'],
    [['keys', 'create', '--tenant', 'nobody'], 'there is no tenant nobody', 'glovebox tenants create nobody'],
    [['tenants', 'create', 'Bad Name'], 'tenant id', 'glovebox tenants create --help'],
    [['tenants', 'set', 'default', '--cpus', 'many'], '--cpus', 'glovebox tenants set --help'],
    [['tenants', 'rm', 'default'], 'stays', ''],
    [['audit', 'ls', '--act', 'everything'], 'act', 'glovebox audit ls --help'],
    [['audit', 'ls', '--since', 'then'], '--since', 'glovebox audit ls --help'],
  ])('%j is refused in words, with the way on', async (args, word, hint) => {
    const { code, stdout, stderr } = await run(...args)
    expect([code, stdout]).toEqual([125, ''])
    expect(stderr).toContain(word)
    expect(stderr).toContain(hint)
  })

  test('the trail is listed, verified here and elsewhere, and a changed byte is found', async () => {
    const { records } = (await json('audit', 'ls', '--act', 'key.create')) as { records: { actor: string; outcome?: { kind: string } }[] }
    expect(records.map(({ actor }) => actor)).toContain('local')
    expect((await run('audit', 'ls', '-n', '2')).stdout.trim().split('\n')).toHaveLength(2)
    expect((await run('audit', 'verify')).stdout).toMatch(/^✓ \d+ records/)
    const [head, exported] = [join(home, 'head.json'), join(home, 'trail.ndjson')]
    writeFileSync(head, (await run('audit', 'head')).stdout)
    writeFileSync(exported, (await run('audit', 'export')).stdout)
    expect(await run('audit', 'verify', exported, '--head', head)).toMatchObject({ code: 0, stderr: '' })
    const changed = join(home, 'changed.ndjson')
    writeFileSync(changed, readFileSync(exported, 'utf8').replace('"name":"ci', '"name":"no'))
    expect(await run('audit', 'verify', changed)).toMatchObject({ code: 1, stdout: expect.stringMatching(/^✗ record 1: /) as string })
    expect((await run('audit', 'verify', join(home, 'none'))).code).toBe(125)
  })

  test('the trail is followed as it is written, and pruned with what is left still provable', async () => {
    const child = startCli(['audit', 'tail', '-n', '0', '--json'], env)
    const followed = collect(child)
    const seen = new Promise((resolve) => child.stdout.once('data', resolve))
    // Until it follows, what is written is not seen.
    const writing = setInterval(() => void run('keys', 'create'), 700)
    await seen
    clearInterval(writing)
    child.kill('SIGINT')
    const { stdout, code } = await followed
    expect(code).toBe(0)
    expect(JSON.parse(stdout.split('\n')[0] ?? '')).toMatchObject({ act: 'key.create', actor: 'local' })
    expect((await run('audit', 'prune', '--before', '1ms')).code).toBe(0)
    expect((await run('audit', 'verify')).stdout).toMatch(/^✓ .*were pruned/)
  })

  test('a folder that others can write to is refused', async () => {
    chmodSync(join(home, 'server'), 0o777)
    expect(await run('keys', 'create')).toMatchObject({ code: 125, stderr: expect.stringContaining('chmod go-w') as string })
    chmodSync(join(home, 'server'), 0o700)
  })
})

test('a server that has no key yet says what to type, and that makes one which it accepts', async () => {
  const state = join(home, 'a state')
  const server = startCli(['serve', '--listen', '127.0.0.1:0', '--state', state, '--grace', '0s', '--quiet'], { GLOVEBOX_KEY_DIR: join(home, 'keys') })
  const ended = collect(server)
  try {
    const said = await new Promise<string>((resolve) => {
      let text = ''
      server.stderr.on('data', (piece: Buffer) => {
        text += piece.toString()
        if (text.includes('there is no key yet')) resolve(text)
      })
    })
    const typed = /there is no key yet: (.*)\n/.exec(said)?.[1]?.replace('glovebox keys', `'${process.execPath}' '${cliPath}' keys`) ?? ''
    const made = spawnSync('sh', ['-c', typed], { encoding: 'utf8', env: { ...process.env, GLOVEBOX_KEY_DIR: join(home, 'keys') } })
    const answer = await fetch(`${/http:\S+/.exec(said)?.[0]}/v1/sandboxes`, { headers: { authorization: `Bearer ${made.stdout.trim()}` } })
    expect([answer.status, await answer.json()]).toEqual([200, { items: [] }])
  } finally {
    server.kill('SIGTERM')
    await ended
  }
})
