import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { cli, fake, parseAs, type RunReport, runFake, withoutChances } from './cli.js'

describe('exit codes', () => {
  test.each([0, 1, 7, 124, 125, 255])("the program's own %i passes through", async (code) => {
    expect(await runFake([], ['sh', '-c', `exit ${code}`])).toMatchObject({ code, stdout: '', stderr: '' })
  })

  test('a program that is not there is 127 with a line', async () => {
    const result = await runFake([], ['no-such-program'])
    expect({ code: result.code, stdout: result.stdout }).toEqual({ code: 127, stdout: '' })
    expect(result.stderr).toMatch(/^glovebox: no-such-program was not found.*\n$/)
  })

  test('a program that may not be executed is 126 with a line', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'glovebox-test-'))
    const path = join(folder, 'plain')
    await writeFile(path, 'text', { mode: 0o644 })
    const result = await runFake([], [path])
    expect(result.code).toBe(126)
    expect(result.stderr).toMatch(/^glovebox: .*plain .*may not be executed\n$/)
    await rm(folder, { recursive: true })
  })

  test('a signal is 128 and its number, with a line', async () => {
    expect(await runFake([], ['sh', '-c', 'kill -SEGV $$'])).toMatchObject({ code: 139, stderr: 'glovebox: sh was ended by SIGSEGV\n' })
    expect(await runFake([], ['sh', '-c', 'kill -KILL $$'])).toMatchObject({ code: 137, stderr: 'glovebox: sh was ended by SIGKILL\n' })
  })

  test('the time limit is 124 with a line', async () => {
    expect(await runFake(['--timeout', '300ms'], ['sleep', '60'])).toMatchObject({
      code: 124,
      stderr: 'glovebox: sleep was stopped: it ran longer than 300 ms (--timeout)\n',
    })
  })

  test('the output limit is 137 with a line, and nothing beyond it is printed', async () => {
    const result = await runFake(['--output', '100k'], ['yes'])
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 137, stderr: 'glovebox: yes was killed: it printed more than 100 KiB (--output)\n' })
    expect(result.bytes.length).toBe(102_400)
  })
})

describe('streams', () => {
  test('stdout and stderr arrive apart and exact', async () => {
    expect(await runFake([], ['sh', '-c', 'printf out; printf err >&2'])).toMatchObject({ code: 0, stdout: 'out', stderr: 'err' })
  })

  test('every byte value passes unchanged', async () => {
    const all = Uint8Array.from({ length: 256 }, (_, value) => value)
    expect((await runFake([], ['cat'], { input: all })).bytes).toEqual(Buffer.from(all))
  })

  test('piped input is forwarded to its end', async () => {
    const input = 'x'.repeat(3_000_000)
    expect(await runFake([], ['wc', '-c'], { input })).toMatchObject({ code: 0, stdout: '3000000\n' })
  })

  test('input that nobody reads does not keep the run', async () => {
    expect(await runFake([], ['true'], { input: 'x'.repeat(3_000_000) })).toMatchObject({ code: 0 })
  })

  test('arguments are never parsed by a shell', async () => {
    const odd = ['a b', '$HOME', '; exit 9', '*', '', '--json', '--', '-q', 'ü\n']
    expect((await runFake([], ['printf', '%s|', ...odd])).stdout).toBe(odd.map((text) => `${text}|`).join(''))
  })

  test("flags after the program's name are the program's, with or without --", async () => {
    expect((await cli(['run', '-q', ...fake, 'echo', '--help', '--', '--version'])).stdout).toBe('--help -- --version\n')
  })

  test('one string with spaces is the name of a program, not a command line', async () => {
    expect(await runFake([], ['echo hi'])).toMatchObject({ code: 127, stdout: '' })
  })

  test('nothing a program prints is coloured or changed for a pipe, and our words are plain too', async () => {
    const result = await runFake(['--timeout', '300ms'], ['sh', '-c', "printf '\\033[31mred'; sleep 9"])
    expect(result.stdout).toBe('\u001b[31mred')
    expect(result.stderr).not.toContain('\u001b')
  })

  test('control characters in our own words are escaped', async () => {
    const result = await runFake([], ['no\u001b[2Jsuch\nglovebox: all is well'])
    expect(result.stderr.split('\n')).toHaveLength(2)
    expect(result.stderr).toContain('no\\x1b[2Jsuch\\nglovebox: all is well was not found')
  })
})

describe('flags', () => {
  test('-e sets exactly what it says, = and all', async () => {
    const result = await runFake(['-e', 'A=1', '-e', 'B=x=y', '-e', 'C='], ['sh', '-c', 'printf "%s|" "$A" "$B" "${C-unset}"'])
    expect(result.stdout).toBe('1|x=y||')
  })

  test("the host's environment does not come along", async () => {
    expect((await runFake([], ['env'], { env: { CANARY_TOKEN: 'secret' } })).stdout).not.toContain('CANARY_TOKEN')
  })

  test('-w is where it starts', async () => {
    expect((await runFake(['-w', '/usr'], ['pwd'])).stdout).toBe('/usr\n')
  })

  test('a folder that is not there is our failure and names it', async () => {
    const result = await runFake(['-w', '/no/such/folder'], ['pwd'])
    expect({ code: result.code, stdout: result.stdout }).toEqual({ code: 125, stdout: '' })
    expect(result.stderr).toBe('glovebox: --workdir: /no/such/folder does not exist\nhint: glovebox run --help\n')
  })

  test('default limits that nothing enforces are one line on stderr, and none with -q', async () => {
    const loud = await cli(['run', ...fake, '--', 'true'])
    expect(loud.stderr).toMatch(/^glovebox: not enforced here: memory, cpus, disk, inodes, fileSize, openFiles, processes \(.+\n$/)
    expect(loud.stderr.split('\n')).toHaveLength(2)
    expect((await cli(['run', '-q', ...fake, '--', 'true'])).stderr).toBe('')
  })

  test('a stated limit that cannot be enforced is refused before anything starts', async () => {
    const result = await runFake(['--memory', '64m'], ['echo', 'started'])
    expect({ code: result.code, stdout: result.stdout }).toEqual({ code: 125, stdout: '' })
    expect(result.stderr).toMatch(/^glovebox: driver fake: --memory cannot be enforced: .*\nhint: glovebox doctor\n$/)
  })
})

describe('--json', () => {
  const json = async (flags: readonly string[], command: readonly string[]) => {
    const result = await runFake(['--json', ...flags], command)
    expect(result.stderr).toBe('')
    expect(result.stdout.split('\n')).toHaveLength(2)
    return { code: result.code, report: parseAs<RunReport>(result.stdout) }
  }

  test.each([
    ['exited', [], ['sh', '-c', 'echo out; echo err >&2; exit 3'], 3],
    ['bytes', [], ['printf', '\\377\\000ok\\357\\277\\275'], 0],
    ['signaled', [], ['sh', '-c', 'kill -TERM $$'], 143],
    ['timed-out', ['--timeout', '300ms'], ['sh', '-c', 'echo before; sleep 60'], 124],
    ['output-limit', ['--output', '10'], ['yes'], 137],
    ['not-started', [], ['no-such-program'], 127],
  ] as const)('%s is one object as its golden file says', async (name, flags, command, code) => {
    const result = await json(flags, command)
    expect(result.code).toBe(code)
    await expect(`${JSON.stringify(withoutChances(result.report), null, 2)}\n`).toMatchFileSnapshot(`golden/run-${name}.json`)
  })

  test('its times are told to the microsecond', async () => {
    const { usage } = (await json([], ['sh', '-c', 'i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done'])).report
    for (const ms of [usage.wallMs, usage.cpuUserMs, usage.cpuSystemMs]) expect(String(ms)).toMatch(/^\d+(?:\.\d{1,3})?$/)
  })

  test('text that is valid UTF-8 comes without base64, a byte order mark included', async () => {
    const { report } = await json([], ['printf', '\\357\\273\\277ü\\0'])
    expect(report.stdout).toBe('\ufeffü\0')
    expect(report).not.toHaveProperty('stdoutBase64')
  })

  test('bytes that are not come as base64 too', async () => {
    const { report } = await json([], ['printf', '\\377\\376'])
    expect(Buffer.from(report.stdoutBase64 ?? '', 'base64')).toEqual(Buffer.from([0xff, 0xfe]))
  })

  test('no control character of the program stands raw in it', async () => {
    const result = await runFake(['--json'], ['printf', '\\033]0;x\\007\\302\\233\\342\\200\\250\\177'])
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
    expect(result.stdout.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/)
    expect(parseAs<RunReport>(result.stdout).stdout).toBe('\u001b]0;x\u0007\u009b\u2028\u007f')
  })
})
