import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { SandboxInfo } from '../../src/contract/platform.js'
import { parseAs } from './cli.js'
import { lastingHome, until } from './lasting.js'

const home = lastingHome()
afterAll(() => home[Symbol.asyncDispose]())

const { cli, create } = home
const exec = (sandbox: string, script: string, flags: readonly string[] = [], input = '') =>
  cli(['exec', ...flags, sandbox, '--', 'sh', '-c', script], { input })

describe('glovebox create', () => {
  test('prints an id and nothing else, and the sandbox is there for the next command', async () => {
    const result = await cli(['create', '-q', '--driver', 'fake', '--min-tier', 'none', '--name', 'first', '--agent', 'a-1', '--metadata', 'pr=412'])
    expect(result).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[a-z0-9]{20}\n$/) as unknown, stderr: '' })
    const info = parseAs<SandboxInfo>((await cli(['info', '--json', 'first'])).stdout)
    expect(info).toMatchObject({
      id: result.stdout.trim(),
      state: 'running',
      spec: { name: 'first', agent: 'a-1', metadata: { pr: '412' }, lifetimeMs: 3_600_000 },
    })
  })

  test('refuses a name that another has, and says whose it is', async () => {
    const id = await create(['--name', 'taken'])
    expect(await cli(['create', '--driver', 'fake', '--min-tier', 'none', '--name', 'taken'])).toMatchObject({
      code: 125,
      stdout: '',
      stderr: `glovebox: --name: there is a sandbox 'taken' already (${id})\nhint: glovebox rm taken\n`,
    })
  })

  test.each([
    [['--lifetime', '5'], /--lifetime: expected a duration/],
    [['--on-expiry', 'sleep'], /--on-expiry: must be one of close, pause/],
    [['--metadata', 'novalue'], /--metadata novalue: expected KEY=VALUE/],
    [['--metadata', 'a=1', '--metadata', 'a=2'], /--metadata: 'a' is given twice/],
    [['--from', 'no-such-snapshot', '--driver', 'fake', '--min-tier', 'none'], /no-such-snapshot/],
  ])('%j is refused, with its own help as the hint', async (flags, message) => {
    const { code, stdout, stderr } = await cli(['create', ...flags])
    expect({ code, stdout }).toEqual({ code: 125, stdout: '' })
    expect(stderr).toMatch(message)
    expect(stderr).toMatch(/^hint: glovebox (?:create --help|snapshots list)$/m)
  })

  test('its lifetime is over when it says', async () => {
    const id = await create(['--lifetime', '300ms'])
    await until(async () => !(await cli(['ls', '-q'])).stdout.includes(id), 'its end')
  })
})

describe('glovebox exec', () => {
  test('hands over streams, arguments, input and the exit code', async () => {
    const id = await create()
    expect(await cli(['exec', id, '--', 'printf', '%s|', 'a b', '$HOME', '--json'])).toMatchObject({ code: 0, stdout: 'a b|$HOME|--json|', stderr: '' })
    expect(await exec(id, 'tr a-z A-Z; echo oops >&2; exit 7', [], 'text')).toMatchObject({ code: 7, stdout: 'TEXT', stderr: 'oops\n' })
    expect(await exec(id, 'echo $WORD; pwd', ['-e', 'WORD=x', '-w', '/tmp'])).toMatchObject({ code: 0, stdout: 'x\n/tmp\n' })
  })

  test('what is written stays for the next', async () => {
    const id = await create()
    await exec(id, 'echo kept > file')
    expect((await exec(id, 'cat file')).stdout).toBe('kept\n')
  })

  test('passes bytes through as they are', async () => {
    const id = await create()
    const { bytes } = await exec(id, "printf '\\000\\377\\n'; head -c 300000 /dev/zero")
    expect(bytes.length).toBe(300_003)
    expect([...bytes.subarray(0, 3)]).toEqual([0, 255, 10])
  })

  test.each([
    ['a program that is not there', ['no-such-program'], 127],
    ['a signal', ['sh', '-c', 'kill -TERM $$'], 143],
  ])('ends with the code of %s', async (_, argv, code) => {
    const id = await create()
    expect((await cli(['exec', id, '--', ...argv])).code).toBe(code)
  })

  test('ends with 124 past --timeout, and the sandbox stays', async () => {
    const id = await create()
    const result = await exec(id, 'sleep 60', ['--timeout', '300ms'])
    expect(result).toMatchObject({ code: 124, stderr: expect.stringContaining('longer than 300 ms') as unknown })
    expect((await exec(id, 'echo on')).stdout).toBe('on\n')
  })

  test('--json is one object with the outcome', async () => {
    const id = await create()
    const { code, stdout } = await exec(id, 'echo out; echo err >&2; exit 3', ['--json'])
    expect({ code, ...parseAs<object>(stdout) }).toMatchObject({
      code: 3,
      id,
      outcome: { kind: 'exited', code: 3 },
      stdout: 'out\n',
      stderr: 'err\n',
      truncated: false,
    })
  })

  test('a flag that stands too late is refused instead of being run', async () => {
    const id = await create()
    expect(await cli(['exec', id, '-d', 'true'])).toMatchObject({ code: 125, stderr: expect.stringContaining("'-d' looks like a flag") as unknown })
    expect((await cli(['exec', id])).stderr).toBe("glovebox: missing required argument 'COMMAND'\nhint: glovebox exec --help\n")
  })

  test('--detach leaves it running, and logs shows what it prints, by tag and by pid', async () => {
    const id = await create(['--name', 'detached'])
    const started = await exec('detached', 'echo one; echo two >&2; while [ ! -e go ]; do sleep 0.05; done; echo three', ['-d', '--tag', 'work'])
    expect(started).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\n$/) as unknown })
    const pid = started.stdout.trim()
    await until(async () => (await cli(['logs', 'detached', 'work'])).stderr === 'two\n', 'its second line')
    expect(await cli(['logs', 'detached', pid])).toMatchObject({ code: 0, stdout: 'one\n', stderr: 'two\n' })
    const following = cli(['logs', '-f', 'detached', 'work'])
    await exec(id, 'touch go')
    expect(await following).toMatchObject({ code: 0, stdout: 'one\nthree\n' })
    const lines = (await cli(['logs', '-f', '--json', 'detached'])).stdout
      .trim()
      .split('\n')
      .map((line) => parseAs<{ type: string; text?: string }>(line))
    expect(lines.map(({ type, text }) => [type, text])).toEqual([
      ['stdout', 'one\n'],
      ['stderr', 'two\n'],
      ['stdout', 'three\n'],
      ['ended', undefined],
    ])
    expect(parseAs<{ processes: unknown[] }>((await cli(['info', '--json', id])).stdout).processes).toMatchObject([{ tag: 'work', state: 'ended' }])
  })

  test('of several, logs says of each line whose it is, and lets none forge another', async () => {
    const id = await create()
    await exec(id, 'printf "a\\rb | c\\nlast"', ['-d', '--tag', 'a'])
    await exec(id, 'echo one', ['-d', '--tag', 'b'])
    await until(async () => (await cli(['logs', id])).stdout.split('\n').length === 4, 'three lines')
    expect((await cli(['logs', id])).stdout.trimEnd().split('\n').sort()).toEqual(['a | a\\x0db | c', 'a | last', 'b | one'])
  })
})

describe('a sandbox is found', () => {
  test('by its name and the beginning of its id, and what is none says what was meant', async () => {
    const id = await create(['--name', 'wanted'])
    for (const reference of [id, 'wanted', id.slice(0, 12)]) expect((await cli(['exec', reference, '--', 'true'])).code).toBe(0)
    expect(await cli(['exec', 'wantde', '--', 'true'])).toMatchObject({
      code: 125,
      stderr: "glovebox: there is no sandbox 'wantde' (did you mean wanted?)\nhint: glovebox ls\n",
    })
  })

  test('a fork has a name of its own, and two of one name are listed instead of one being taken', async () => {
    await create(['--name', 'twin'])
    const forked = (await cli(['fork', '-n', '2', 'twin'])).stdout.trim().split('\n')
    expect((await cli(['exec', 'twin', '--', 'true'])).code).toBe(0)
    const { code, stderr } = await cli(['exec', 'twin-fork', '--', 'true'])
    expect(code).toBe(125)
    for (const each of forked) expect(stderr).toContain(`${each} (twin-fork)`)
    expect((await cli(['exec', forked[0] ?? '', '--', 'true'])).code).toBe(0)
  })
})

describe('glovebox ls and rm', () => {
  test('ls filters, and is a table, ids or JSON', async () => {
    const ids = [await create(['--name', 'l1', '--agent', 'lister', '--metadata', 'k=v']), await create(['--name', 'l2', '--agent', 'lister'])]
    expect((await cli(['ls', '-q', '--agent', 'lister'])).stdout.trim().split('\n').sort()).toEqual([...ids].sort())
    expect((await cli(['ls', '-q', '--metadata', 'k=v', '--agent', 'lister'])).stdout.trim()).toBe(ids[0])
    expect((await cli(['ls', '--name', 'l2'])).stdout).toMatch(new RegExp(`^ID +NAME .*\\n${ids[1]?.slice(0, 12)}  l2    running  host `))
    const { sandboxes } = parseAs<{ sandboxes: SandboxInfo[] }>((await cli(['ls', '--json', '--name', 'l1'])).stdout)
    expect(sandboxes).toMatchObject([{ id: ids[0], driver: 'fake', state: 'running' }])
    expect(await cli(['ls', '--agent', 'nobody'])).toMatchObject({ code: 0, stdout: '', stderr: 'glovebox: no sandbox is like that\n' })
  })

  test('rm removes several, says which was none, and removes the others all the same', async () => {
    const ids = [await create(['--name', 'r1']), await create()]
    const { code, stdout, stderr } = await cli(['rm', 'r1', 'r-none', ids[1] ?? ''])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain("there is no sandbox 'r-none'")
    const left = (await cli(['ls', '-q'])).stdout
    expect(ids.filter((id) => left.includes(id))).toEqual([])
  })

  test('rm --agent removes those alone, and nothing is removed because nothing was said', async () => {
    const other = await create(['--agent', 'stays'])
    const id = await create(['--agent', 'goes'])
    expect(parseAs<object>((await cli(['rm', '--json', '--agent', 'goes'])).stdout)).toEqual({ removed: [id], missing: [] })
    expect((await cli(['ls', '-q'])).stdout).toContain(other)
    expect(await cli(['rm'])).toMatchObject({ code: 125, stderr: "glovebox: missing required argument 'SANDBOX'\nhint: glovebox rm --help\n" })
    expect((await cli(['rm', '--all', other])).code).toBe(125)
    expect((await cli(['ls', '-q'])).stdout).toContain(other)
  })
})

describe('glovebox pause, resume, snapshot, fork', () => {
  test('what is paused takes nothing until it is resumed', async () => {
    const id = await create()
    expect((await cli(['pause', id])).code).toBe(0)
    expect(parseAs<{ state: string }>((await cli(['info', '--json', id])).stdout).state).toBe('paused')
    expect(await cli(['exec', id, '--', 'true'])).toMatchObject({ code: 125, stderr: expect.stringMatching(/paused/) as unknown })
    expect((await cli(['resume', id])).code).toBe(0)
    expect((await exec(id, 'echo on')).stdout).toBe('on\n')
  })

  test('a snapshot is what a new one can begin with, and a fork has the files as they are', async () => {
    const id = await create(['--name', 'origin'])
    await exec(id, 'echo 42 > answer')
    const taken = await cli(['snapshot', '--name', 'kept', id])
    expect(taken).toMatchObject({ code: 0, stdout: expect.stringMatching(/^sha256:[0-9a-f]{64}\n$/) as unknown })
    const begun = await create(['--from', 'kept'])
    expect((await exec(begun, 'cat answer')).stdout).toBe('42\n')
    const forks = (await cli(['fork', '-n', '2', '--name', 'copy', id])).stdout.trim().split('\n')
    expect(forks).toHaveLength(2)
    for (const fork of forks) expect((await exec(fork, 'cat answer')).stdout).toBe('42\n')
    expect((await cli(['fork', '-n', 'many', id])).stderr).toContain('--count: expected a whole number from 1')
  })
})

describe('glovebox cp', () => {
  const local = join(home.top, 'local')
  mkdirSync(join(local, 'tree/deep'), { recursive: true })
  writeFileSync(join(local, 'file'), 'content\n')
  writeFileSync(join(local, 'tree/deep/leaf'), 'leaf\n')

  test('copies files and folders in and out, and into folders under their names', async () => {
    const id = await create()
    expect(await cli(['cp', join(local, 'file'), `${id}:renamed`])).toMatchObject({ code: 0, stdout: '', stderr: '' })
    await cli(['cp', join(local, 'file'), `${id}:`])
    await cli(['cp', join(local, 'tree'), `${id}:new`])
    await cli(['cp', join(local, 'tree'), `${id}:new`])
    await cli(['cp', `${join(local, 'tree')}/.`, `${id}:only`])
    expect((await exec(id, 'find . -type f | sort')).stdout.split('\n')).toEqual([
      './file',
      './new/deep/leaf',
      './new/tree/deep/leaf',
      './only/deep/leaf',
      './renamed',
      '',
    ])
    const out = join(home.top, 'out')
    mkdirSync(out)
    expect((await cli(['cp', `${id}:new`, out])).code).toBe(0)
    expect(readFileSync(join(out, 'new/tree/deep/leaf'), 'utf8')).toBe('leaf\n')
    expect((await cli(['cp', `${id}:renamed`, join(out, 'as')])).code).toBe(0)
    expect(readFileSync(join(out, 'as'), 'utf8')).toBe('content\n')
  })

  test('replaces nothing local without --force', async () => {
    const id = await create()
    await exec(id, 'echo theirs > f')
    const own = join(home.top, 'own')
    writeFileSync(own, 'mine\n')
    expect((await cli(['cp', `${id}:f`, own])).code).toBe(125)
    expect(readFileSync(own, 'utf8')).toBe('mine\n')
    expect((await cli(['cp', '--force', `${id}:f`, own])).code).toBe(0)
    expect(readFileSync(own, 'utf8')).toBe('theirs\n')
  })

  test('- is a file, or a tar archive where the other end is a folder', async () => {
    const id = await create()
    expect((await cli(['cp', '-', `${id}:in`], { input: 'piped' })).code).toBe(0)
    expect(await cli(['cp', `${id}:in`, '-'])).toMatchObject({ code: 0, stdout: 'piped' })
    const archive = execFileSync('tar', ['-C', local, '-c', 'tree'])
    expect((await cli(['cp', '-', `${id}:unpacked/`], { input: archive })).code).toBe(0)
    expect((await exec(id, 'cat unpacked/tree/deep/leaf')).stdout).toBe('leaf\n')
    const { bytes } = await cli(['cp', `${id}:unpacked`, '-'])
    expect(execFileSync('tar', ['-t'], { input: bytes, encoding: 'utf8' })).toContain('tree/deep/leaf')
  })

  test('copies from one to another', async () => {
    const [one, other] = [await create(), await create()]
    await exec(one, 'mkdir d; echo x > d/f; printf "#!/bin/sh\\necho ran" > p; chmod +x p')
    expect((await cli(['cp', `${one}:d`, `${other}:d`])).code).toBe(0)
    expect((await cli(['cp', `${one}:p`, `${other}:p`])).code).toBe(0)
    expect((await exec(other, 'cat d/f; ./p')).stdout).toBe('x\nran\n')
  })

  test.each([
    [['a', 'b'], /neither 'a' nor 'b' is of a sandbox/],
    [['x:', 'x:y', '--user', 'bob'], /--user: must be one of user, root/],
    [[join(home.top, 'no-such-file'), 'ID:x'], /no-such-file/],
    [['ID:no-such-file', '.'], /no-such-file/],
  ])('%j is refused', async (args, message) => {
    const id = await create()
    const result = await cli(['cp', ...args.map((each) => each.replace('ID', id))])
    expect({ code: result.code, stdout: result.stdout }).toEqual({ code: 125, stdout: '' })
    expect(result.stderr).toMatch(message)
  })
})

describe('glovebox stats and info', () => {
  test('tell what is used beside what may be', async () => {
    const id = await create(['--name', 'measured'])
    expect((await cli(['stats', 'measured'])).stdout).toMatch(
      /^SANDBOX +STATE +CPU +MEMORY .*\nmeasured +running +[\d.?]+ %? ?of 50 % .* of 512 MiB .* of 100 MiB /,
    )
    const { sandboxes } = parseAs<{ sandboxes: unknown[] }>((await cli(['stats', '--json', id])).stdout)
    expect(sandboxes).toMatchObject([{ id, name: 'measured', limits: { memoryBytes: 2 ** 29, processes: 64 }, usage: { runs: 0 }, network: null }])
    expect((await cli(['info', id])).stdout).toMatch(/^measured\nid +[a-z0-9]{20}\nstate +running\n/)
  })

  test('stats --follow is a line a second for each, and ends with the last that was named', async () => {
    const id = await create(['--lifetime', '6s'])
    const lines = (await cli(['stats', '-f', '--json', id])).stdout.trim().split('\n')
    expect(lines.length).toBeGreaterThanOrEqual(2)
    for (const line of lines) expect(parseAs<object>(line)).toMatchObject({ id, state: 'running' })
  })
})

describe('glovebox url', () => {
  test('prints an address that works after the command is over', async () => {
    const id = await create()
    const port = 20_000 + (process.pid % 20_000)
    await cli(['exec', '-d', id, '--', '/usr/bin/python3', '-m', 'http.server', String(port), '--bind', '127.0.0.1'])
    const { code, stdout } = await cli(['url', '--wait', '--', id, String(port)])
    expect(code).toBe(0)
    expect((await fetch(stdout.trim())).status).toBe(200)
    expect((await cli(['url', id, String(port)])).stdout).toBe(stdout)
    expect((await cli(['url', id, '70000'])).stderr).toContain("PORT: expected a number from 1 to 65535, got '70000'")
    expect((await cli(['url', '--wait=200ms', id, '1'])).code).toBe(125)
  })
})

describe('one-shots', () => {
  /** Prints the pids of all that it descends from. */
  const ancestors = ['sh', '-c', 'pid=$$; while [ "$pid" -gt 1 ]; do pid=$(cut -d" " -f4 "/proc/$pid/stat"); echo "$pid"; done']

  test('run uses the daemon while it is there, and leaves nothing in it', async () => {
    await create()
    const { stdout } = await cli(['run', '--json', '--driver', 'fake', '--min-tier', 'none', '--', ...ancestors])
    const report = parseAs<{ id: string; stdout: string }>(stdout)
    expect(report.stdout.split('\n')).toContain(String(home.daemonPid()))
    expect((await cli(['ls', '-q'])).stdout).not.toContain(report.id)
  })

  test('run --here never does: its folder is looked after by whoever asks', async () => {
    await create()
    const { stdout, stderr } = await cli(['run', '--here', '--driver', 'fake', '--min-tier', 'none', '--', 'true'])
    expect(stdout + stderr).toContain('--here')
  })

  test('code does too', async () => {
    await create()
    expect(await cli(['code', '-q', '--driver', 'fake', '--min-tier', 'none', '-l', 'bash', '-c', 'echo $((6*7))'])).toMatchObject({ code: 0, stdout: '42\n' })
  })
})
