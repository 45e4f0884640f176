import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { bytesInWords } from '../../src/cli/words.js'
import { defaultLimits } from '../../src/contract/limit-words.js'
import { fileSizeFor, parseSpec } from '../../src/policy/spec.js'
import { cli, cliPath, fake } from './cli.js'

const lasting = ['create', 'exec', 'logs', 'cp', 'ls', 'info', 'stats', 'pause', 'resume', 'snapshot', 'fork', 'url', 'rm']

describe('help', () => {
  test.each([
    ['help', ['--help']],
    ['run-help', ['run', '--help']],
    ['code-help', ['code', '--help']],
    ['create-help', ['create', '--help']],
    ['exec-help', ['exec', '--help']],
    ['logs-help', ['logs', '--help']],
    ['cp-help', ['cp', '--help']],
    ['ls-help', ['ls', '--help']],
    ['info-help', ['info', '--help']],
    ['stats-help', ['stats', '--help']],
    ['pause-help', ['pause', '--help']],
    ['resume-help', ['resume', '--help']],
    ['snapshot-help', ['snapshot', '--help']],
    ['fork-help', ['fork', '--help']],
    ['url-help', ['url', '--help']],
    ['rm-help', ['rm', '--help']],
    ['mcp-help', ['mcp', '--help']],
    ['serve-help', ['serve', '--help']],
    ['sh-help', ['sh', '--help']],
    ['changes-help', ['changes', '--help']],
    ['apply-help', ['apply', '--help']],
    ['drop-help', ['drop', '--help']],
    ['doctor-help', ['doctor', '--help']],
    ['demo-help', ['demo', '--help']],
    ['bench-help', ['bench', '--help']],
    ['verify-help', ['verify', '--help']],
    ['packages-help', ['packages', '--help']],
    ['policy-help', ['policy', '--help']],
    ['policy-check-help', ['policy', 'check', '--help']],
    ['policy-show-help', ['policy', 'show', '--help']],
  ])('%s is what its golden file says, on stdout', async (name, args) => {
    const result = await cli(args)
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 0, stderr: '' })
    await expect(result.stdout).toMatchFileSnapshot(`golden/${name}.txt`)
  })

  test('no line of it is wider than 80 columns', async () => {
    for (const command of [
      [],
      ...lasting.map((name) => [name]),
      ['run'],
      ['sh'],
      ['code'],
      ['mcp'],
      ['doctor'],
      ['demo'],
      ['bench'],
      ['policy'],
      ['policy', 'check'],
      ['policy', 'show'],
    ]) {
      const { stdout } = await cli([...command, '--help'])
      expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
    }
  })

  test('the defaults it names are the defaults there are', async () => {
    const { stdout } = await cli(['run', '--help'])
    const unstated = parseSpec({})
    expect(stdout).toContain(`memory it may use (${defaultLimits.memoryBytes / 2 ** 20}m)`)
    expect(stdout).toContain(`CPUs it may use (${defaultLimits.cpus})`)
    expect(stdout).toContain(`wall time it may take (${defaultLimits.timeMs / 1000}s)`)
    expect(stdout).toContain(`what it may write to files (${defaultLimits.diskBytes / 2 ** 20}m)`)
    expect(stdout).toContain(`processes it may have at once (${defaultLimits.processes})`)
    expect(stdout).toContain(`open files of a process, 1024 at first (${defaultLimits.openFiles})`)
    expect(stdout).toContain(`its root: readonly or overlay (${unstated.root})`)
    expect(stdout).toContain(`who it runs as: user or root (${unstated.user})`)
    expect(stdout).toContain(`accept no weaker boundary (${unstated.minTier})`)
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(`its files: host, python, node, shell, or one that was built (${unstated.template})`)
    expect([unstated.limits.inodes, unstated.limits.fileSizeBytes]).toEqual([defaultLimits.diskBytes / 4096, fileSizeFor(defaultLimits.diskBytes)])
    expect([defaultLimits.cpuTimeMs, defaultLimits.readBytesPerSecond, defaultLimits.writeBytesPerSecond]).toEqual([undefined, undefined, undefined])
    expect([unstated.commands, unstated.seccomp]).toEqual([undefined, undefined])
    expect(stdout).toContain(`what it may print (${defaultLimits.outputBytes / 2 ** 20}m)`)
    expect(bytesInWords(defaultLimits.outputBytes)).toBe('10 MiB')
  })

  test('without any argument it is the same', async () => {
    expect((await cli([])).stdout).toBe((await cli(['--help'])).stdout)
  })

  test.each(['run', 'sh', 'doctor', 'demo', 'policy'])('help %s is the same as its --help, and help help as ours', async (command) => {
    expect(await cli(['help', command])).toMatchObject({ code: 0, stderr: '', stdout: (await cli([command, '--help'])).stdout })
    expect(await cli(['help', 'help'])).toMatchObject({ code: 0, stderr: '', stdout: (await cli(['--help'])).stdout })
  })

  test('every flag of it is in the documentation by its long name', async () => {
    const documentation = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')
    for (const command of [['run'], ['exec'], ['logs'], ['cp'], ['ls'], ['stats'], ['rm'], ['doctor'], ['demo'], ['policy', 'check'], ['policy', 'show']]) {
      const section = documentation.split(`\n## ${command[0] ?? ''}\n`)[1]?.split(/\n## /)[0] ?? ''
      const flags = (await cli([...command, '--help'])).stdout.match(/(?<= )--[a-z][a-z-]+(?=[ ,])/g) ?? []
      expect(new Set(flags).size).toBeGreaterThanOrEqual(2)
      expect(flags.filter((flag) => flag !== '--help' && !section.includes(flag))).toEqual([])
    }
  })

  test('--version prints the version and nothing else', async () => {
    expect(await cli(['--version'])).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as unknown })
  })
})

describe('a wrong command line', () => {
  test.each([
    ['an unknown command', ['rnu'], "glovebox: unknown command 'rnu' (did you mean run?)\nhint: glovebox --help\n"],
    ['help of an unknown command', ['help', 'rnu'], "glovebox: unknown command 'rnu' (did you mean run?)\nhint: glovebox --help\n"],
    ['an unknown flag', ['run', '--timout', '1s', '--', 'true'], "glovebox: unknown option '--timout' (did you mean --timeout?)\nhint: glovebox run --help\n"],
    ['a flag of later versions', ['run', '--publish', '8080', '--', 'true'], "glovebox: unknown option '--publish'\nhint: glovebox run --help\n"],
    ['no program', ['run'], "glovebox: missing required argument 'COMMAND'\nhint: glovebox run --help\n"],
    ['a command without what to do', ['policy', 'chekc', 'x'], "glovebox: unknown command 'chekc' (did you mean check?)\nhint: glovebox policy --help\n"],
    ['no policy to check', ['policy', 'check'], "glovebox: missing required argument 'FILE'\nhint: glovebox policy check --help\n"],
    ['no value', ['run', '-m'], "glovebox: option '-m, --memory <SIZE>' argument missing\nhint: glovebox run --help\n"],
    [
      'a variable without a value',
      ['run', '-e', 'SECRET', '--', 'true'],
      'glovebox: --env SECRET: has no value, and nothing is taken from the host\'s environment by itself\nhint: glovebox run --env SECRET="$SECRET" -- …\n',
    ],
    ['an empty variable name', ['run', '-e', '=x', '--', 'true'], 'glovebox: --env =x: has no name\nhint: glovebox run --help\n'],
    [
      'a size that is none',
      ['run', '-m', 'lots', '--', 'true'],
      "glovebox: --memory: expected a size such as '512m', at least 4m and at most 16t, got 'lots'\nhint: glovebox run --help\n",
    ],
    [
      'a negative size',
      ['run', '--disk', '-1', '--', 'true'],
      "glovebox: --disk: expected a size such as '100m', at least 64k and at most 16t, got '-1'\nhint: glovebox run --help\n",
    ],
    ['an absurd size', ['run', '-m', '999999t', '--', 'true'], "glovebox: --memory: must be at most 16t, got '999999t'\nhint: glovebox run --help\n"],
    ['a tiny size', ['run', '-m', '1k', '--', 'true'], "glovebox: --memory: must be at least 4m, got '1k'\nhint: glovebox run --help\n"],
    ['an endless time', ['run', '--timeout', '8d', '--', 'true'], "glovebox: --timeout: must be at most 7d, got '8d'\nhint: glovebox run --help\n"],
    [
      'a duration without a unit',
      ['run', '--timeout', '5', '--', 'true'],
      "glovebox: --timeout: expected a duration with a unit such as '60s', at least 1ms and at most 7d, got '5'\nhint: glovebox run --help\n",
    ],
    [
      'half a process',
      ['run', '--pids', '0.5', '--', 'true'],
      "glovebox: --pids: expected a whole number such as '64', at least 1 and at most 100000, got '0.5'\nhint: glovebox run --help\n",
    ],
    ['no process', ['run', '--pids', '0', '--', 'true'], "glovebox: --pids: must be at least 1, got '0'\nhint: glovebox run --help\n"],
    ['no processor', ['run', '--cpus', '0', '--', 'true'], "glovebox: --cpus: must be at least 0.01, got '0'\nhint: glovebox run --help\n"],
    [
      'a number that is none',
      ['run', '--cpus', 'abc', '--', 'true'],
      "glovebox: --cpus: expected a number such as '0.5', at least 0.01 and at most 4096, got 'abc'\nhint: glovebox run --help\n",
    ],
    ['an empty name', ['run', '--name', '', '--', 'true'], 'glovebox: --name: must not be empty\nhint: glovebox run --help\n'],
    ['an endless name', ['run', '--name', 'x'.repeat(201), '--', 'true'], 'glovebox: --name: must be at most 200 characters\nhint: glovebox run --help\n'],
    [
      'a template that is none',
      ['run', '--template', 'nope', '--', 'true'],
      /^glovebox: --template: there is no 'nope'; there are host, shell, python, node.*\nhint: glovebox template (?:ls|build (?:data|polyglot))\n$/,
    ],
    ['a relative folder', ['run', '-w', 'here', '--', 'true'], 'glovebox: --workdir: must be an absolute path\nhint: glovebox run --help\n'],
    ['a user that is none', ['run', '-u', 'bob', '--', 'true'], "glovebox: --user: must be one of user, root, got 'bob'\nhint: glovebox run --help\n"],
    ['a tier that is none', ['run', '--min-tier', 'steel', '--', 'true'], /^glovebox: --min-tier: must be one of none, .*\nhint: glovebox run --help\n$/],
    ['an empty program name', ['run', '--', ''], 'glovebox: COMMAND: the program name must not be empty\nhint: glovebox run --help\n'],
  ])('%s is 125 with a line that names it and a hint', async (_, args, stderr) => {
    const result = await cli(args)
    expect({ code: result.code, stdout: result.stdout }).toEqual({ code: 125, stdout: '' })
    if (typeof stderr === 'string') expect(result.stderr).toBe(stderr)
    else expect(result.stderr).toMatch(stderr)
  })

  test.each([
    ['behind a flag that is none', ['run', '--nope', '--json', '--', 'true'], true],
    ['behind a flag and its value', ['run', '--memory', '1m', '--nope', '--json', '--', 'true'], true],
    ['of the program', ['run', '--nope', 'echo', '--json'], false],
    ['behind --', ['run', '--nope', '--', '--json'], false],
    ['of another command', ['receipt', 'show', '--nope', '--json'], true],
  ])('--json %s decides what an error looks like', async (_, args, isJson) => {
    const { code, stdout, stderr } = await cli(args)
    expect({ code, json: stdout.startsWith('{"error":{"code":"invalid",'), text: stderr.startsWith('glovebox: ') }).toEqual({
      code: 125,
      json: isJson,
      text: !isJson,
    })
  })

  test.each([
    [['--policy', 'strict', '--policy', 'default'], '--policy: is given twice; a run is held to one'],
    [['--output', '1.5'], "--output: expected a whole number of bytes, got '1.5'"],
    [['--file-size', '1.5b'], "--file-size: expected a whole number of bytes, got '1.5b'"],
  ])('%j is refused', async (flags, message) => {
    expect(await cli(['run', ...flags, '--', 'true'])).toMatchObject({ code: 125, stdout: '', stderr: `glovebox: ${message}\nhint: glovebox run --help\n` })
  })

  test('with --json the error is an object on stdout', async () => {
    const result = await cli(['run', '--json', '--user', 'bob', '--', 'true'])
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 125, stderr: '' })
    expect(JSON.parse(result.stdout)).toEqual({
      error: { code: 'invalid', message: "--user: must be one of user, root, got 'bob'", hint: 'glovebox run --help' },
    })
  })

  test('a driver that is none is refused with a hint', async () => {
    expect(await cli(['run', '--driver', 'steel', '--', 'true'])).toMatchObject({
      code: 125,
      stdout: '',
      stderr: expect.stringMatching(/^glovebox: .*steel.*\nhint: .+\n$/) as unknown,
    })
  })

  test('no stack trace is shown unless GLOVEBOX_DEBUG asks for it', async () => {
    const args = ['run', '--driver', 'steel', '--', 'true']
    expect((await cli(args)).stderr).not.toMatch(/^\s+at /m)
    expect((await cli(args, { env: { GLOVEBOX_DEBUG: '1' } })).stderr).toMatch(/^\s+at /m)
  })

  test('hints, help and examples name us as we were called', async () => {
    const env = { GLOVEBOX_NAME: './glovebox' }
    expect((await cli(['rnu'], { env })).stderr).toBe("glovebox: unknown command 'rnu' (did you mean run?)\nhint: ./glovebox --help\n")
    const help = (await cli(['--help'], { env })).stdout
    expect(help).toContain('Usage: ./glovebox COMMAND')
    expect(help).toContain('\n  ./glovebox demo\n')
    expect((await cli(['doctor'], { env })).stdout).not.toMatch(/(?<!\/)glovebox (?:demo|run|doctor)/)
    expect((await cli(['rnu'], { env: { GLOVEBOX_NAME: 'a b\u001b[2J' } })).stderr).toContain('hint: glovebox --help\n')
  })
})

describe('an argument that is not UTF-8', () => {
  /** By a shell: Node itself can pass no such bytes on. */
  const withBytes = (...flags: string[]) =>
    spawnSync('sh', ['-c', 'bytes=$1; shift; exec "$@" "$(printf "$bytes")"', 'sh', 'x\\377y', process.execPath, cliPath, 'run', '-q', ...fake, ...flags], {
      encoding: 'utf8',
      input: '',
    })

  test('is refused by its number and its bytes instead of being changed', () => {
    const { status, stdout, stderr } = withBytes('--', 'printf', '%s')
    expect({ status, stdout }).toEqual({ status: 125, stdout: '' })
    expect(stderr).toBe("glovebox: argument 10 is not valid UTF-8 and would not arrive as it is: 'x\\xffy'\nhint: hand the bytes over as stdin\n")
  })

  test('is refused with --json as an object', () => {
    const { status, stdout } = withBytes('--json', '--', 'echo')
    expect({ status, error: (JSON.parse(stdout) as { error: { code: string } }).error.code }).toEqual({ status: 125, error: 'invalid' })
  })

  test('is not confused with the character that stands for one', async () => {
    expect(await cli(['run', '-q', ...fake, '-e', 'A=\ufffd', '--', 'printf', '%s', '', 'a\ufffd'])).toMatchObject({ code: 0, stdout: 'a\ufffd' })
  })
})
