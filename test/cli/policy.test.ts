import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PolicyInput } from '../../src/contract/policy.js'
import { cli, fake, parseAs, type RunReport } from './cli.js'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'glovebox-policy-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A policy file in a folder of its own, as its author wrote it. */
function file(name: string, document: PolicyInput | string): string {
  const path = join(folder, name)
  writeFileSync(path, typeof document === 'string' ? document : JSON.stringify(document, undefined, 2))
  return path
}

/** Limits that every driver holds, `fake` included. */
const short: PolicyInput = { ceiling: { limits: { time: '20s', output: '1k' } } }

describe('run --policy', () => {
  test('a run within the caps is as it is without them', async () => {
    const path = file('short.json', short)
    expect(await cli(['run', '-q', ...fake, '--policy', path, '--timeout', '10s', '--', 'echo', 'hi'])).toMatchObject({ code: 0, stdout: 'hi\n', stderr: '' })
  })

  test('a flag above a cap is refused, and the line names flag, value, cap and file', async () => {
    const path = file('refusing.json', short)
    expect(await cli(['run', '-q', ...fake, '--policy', path, '--timeout', '30s', '--', 'true'])).toMatchObject({
      code: 125,
      stdout: '',
      stderr: `glovebox: --timeout: 30s is above the 20s that policy '${path}' allows\nhint: glovebox policy show ${path}\n`,
    })
  })

  test('a flag above a cap is lowered by a policy that lowers, and a line says so even with --quiet', async () => {
    const path = file('lowering.json', { ...short, name: 'kind', onExceed: 'clamp' })
    const result = await cli(['run', '-q', ...fake, '--policy', path, '--timeout', '30s', '--output', '2k', '--', 'sh', '-c', 'yes | head -c 1500'])
    expect({ code: result.code, bytes: result.bytes.length }).toEqual({ code: 137, bytes: 1024 })
    expect(result.stderr).toBe(
      "glovebox: lowered by policy 'kind': --timeout from 30s to 20s; --output from 2k to 1k\nglovebox: sh was killed: it printed more than 1 KiB (--output)\n",
    )
  })

  test('with --json what was lowered is a field', async () => {
    const path = file('lowering-json.json', { ...short, name: 'kind', onExceed: 'clamp' })
    const result = await cli(['run', '--json', ...fake, '--policy', path, '--timeout', '30s', '--', 'true'])
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 0, stderr: '' })
    expect(parseAs<RunReport & { clamped: unknown }>(result.stdout).clamped).toEqual([{ field: 'limits.time', asked: 30_000, given: 20_000, policy: 'kind' }])
  })

  test('a cap that cannot be enforced refuses the run, also where nothing was asked', async () => {
    const result = await cli(['run', ...fake, '--policy', file('memory.json', { ceiling: { limits: { memory: '64m' } } }), '--', 'true'])
    expect({ code: result.code, stdout: result.stdout }).toEqual({ code: 125, stdout: '' })
    expect(result.stderr).toMatch(/^glovebox: driver fake: --memory cannot be enforced: .*\nhint: /)
  })

  test('a variable that is not allowed is refused before anything runs', async () => {
    const path = file('env.json', { name: 'p', ceiling: { env: ['TZ'] } })
    expect(await cli(['run', '-q', ...fake, '--policy', path, '-e', 'TZ=UTC', '--', 'sh', '-c', 'echo $TZ'])).toMatchObject({ code: 0, stdout: 'UTC\n' })
    expect(await cli(['run', '-q', ...fake, '--policy', path, '-e', 'TOKEN=x', '--', 'true'])).toMatchObject({
      code: 125,
      stderr: "glovebox: --env TOKEN: is not among the variables that policy 'p' allows (TZ)\nhint: glovebox policy show PATH\n".replace('PATH', path),
    })
  })

  test('a variable that is not allowed is left out by a policy that lowers, and told in the same line as the rest', async () => {
    const path = file('env-lowering.json', { ...short, name: 'kind', ceiling: { ...short.ceiling, env: ['TZ'] }, onExceed: 'clamp' })
    const flags = ['--timeout', '30s', '-e', 'TZ=UTC', '-e', 'TOKEN=x']
    expect(await cli(['run', '-q', ...fake, '--policy', path, ...flags, '--', 'sh', '-c', 'echo $TZ $TOKEN'])).toMatchObject({
      code: 0,
      stdout: 'UTC\n',
      stderr: "glovebox: lowered by policy 'kind': --timeout from 30s to 20s; --env TOKEN left out\n",
    })
  })

  test.each([
    ['that is not there', 'nope.json', undefined, /: cannot be read as a policy: there is no such file, and no such preset \(strict, default, data\)\n/],
    ['that is broken', 'broken.json', '{\n  "ceiling": {,}\n}', /: line 2, column 15: expected a name in double quotes, got ',}'\n/],
    ['with a field that is none', 'field.json', '{"ceiling":{"limit":{}}}', /: ceiling\.limit: is not a known field\n/],
    ['that is not text', 'bytes.json', '\u0000', /: line 1, column 1: expected a value, got '\uFFFD'\n/],
  ])('a file %s is refused by its path', async (_, name, text, message) => {
    const path = text === undefined ? join(folder, name) : file(name, text)
    const result = await cli(['run', ...fake, '--policy', path, '--', 'true'])
    expect({ code: result.code, stdout: result.stdout }).toEqual({ code: 125, stdout: '' })
    expect(result.stderr.startsWith(`glovebox: ${path}: `)).toBe(true)
    expect(result.stderr).toMatch(message)
  })

  test('a folder, and nothing at all, are refused', async () => {
    expect((await cli(['run', '--policy', folder, '--', 'true'])).stderr).toMatch(/: cannot be read as a policy: it is a folder\n/)
    expect((await cli(['run', '--policy', '/dev/zero', '--', 'true'])).stderr).toMatch(/: cannot be read as a policy: it is no file\n/)
    expect((await cli(['run', '--policy', '', '--', 'true'])).stderr).toMatch(/^glovebox: --policy: is empty; name a file, or one of strict, default, data\n/)
  })
})

describe('GLOVEBOX_POLICY', () => {
  test('holds whatever --policy says', async () => {
    const env = { GLOVEBOX_POLICY: file('operator.json', { ...short, name: 'operator' }) }
    for (const own of [[], ['--policy', 'default'], ['--policy', file('own.json', { ceiling: { limits: { time: '1h' } }, onExceed: 'clamp' })]]) {
      expect(await cli(['run', '-q', ...fake, ...own, '--timeout', '30s', '--', 'true'], { env })).toMatchObject({
        code: 125,
        stderr: "glovebox: --timeout: 30s is above the 20s that policy 'operator' allows\nhint: glovebox policy show OWN\n".replace(
          ' OWN',
          own
            .slice(1)
            .map((name) => ` ${name}`)
            .join(''),
        ),
      })
    }
    expect(await cli(['run', '-q', ...fake, '--timeout', '10s', '--', 'echo', 'hi'], { env })).toMatchObject({ code: 0, stdout: 'hi\n' })
  })

  test.each([
    ['', /^glovebox: GLOVEBOX_POLICY: is empty; /],
    ['/no/such/policy.json', /^glovebox: GLOVEBOX_POLICY: \/no\/such\/policy\.json: cannot be read as a policy: /],
  ])('that is %j lets nothing run', async (value, message) => {
    const result = await cli(['run', '-q', ...fake, '--', 'true'], { env: { GLOVEBOX_POLICY: value } })
    expect(result.code).toBe(125)
    expect(result.stderr).toMatch(message)
  })
})

describe('policy check', () => {
  test('finds nothing high in strict and exits with 0', async () => {
    const result = await cli(['policy', 'check', 'strict'])
    expect({ code: result.code, stderr: result.stderr, head: result.stdout.split('\n')[0] }).toEqual({
      code: 0,
      stderr: '',
      head: 'strict: 0 high, 0 medium, 3 low',
    })
  })

  test('names each risky grant with its consequence in 80 columns, the worst first, and exits with 1', async () => {
    const path = file('risky.json', {
      extends: 'strict',
      defaults: { env: { API_TOKEN: 'hush-hush' } },
      ceiling: { commands: ['bash'] },
      onExceed: 'clamp',
    })
    const result = await cli(['policy', 'check', path])
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 1, stderr: '' })
    expect(result.stdout.split('\n').filter((line) => line.length > 80 && !line.includes(path))).toEqual([])
    expect(result.stdout).not.toContain('hush')
    // How long the path is decides where its line is broken.
    const [head = '', ...findings] = result.stdout.split('\n\n')
    const told = [head.replace(/\s+/g, ' ').replace(/^.*risky\.json/, 'risky.json'), ...findings].join('\n\n')
    await expect(told).toMatchFileSnapshot('golden/policy-check.txt')
  })

  test('with --json is one object', async () => {
    const result = await cli(['policy', 'check', '--json', file('open.json', {})])
    const report = parseAs<{ policy: string; ok: boolean; findings: readonly { severity: string; field: string }[] }>(result.stdout)
    expect({ code: result.code, policy: report.policy, ok: report.ok }).toEqual({ code: 1, policy: join(folder, 'open.json'), ok: false })
    expect(report.findings[0]).toEqual({
      severity: 'high',
      field: 'ceiling.minTier',
      grant: "a spec may ask for tier 'none'",
      consequence: 'its programs then run with no boundary at all, as whoever runs us',
    })
  })

  test('of what is no policy is 125', async () => {
    expect(await cli(['policy', 'check', file('wrong.json', '{"ceiling": 7}')])).toMatchObject({
      code: 125,
      stdout: '',
      stderr: `glovebox: ${join(folder, 'wrong.json')}: ceiling: expected a plain object, got a number\nhint: glovebox policy show strict\n`,
    })
  })
})

describe('policy show', () => {
  test('prints the whole of a policy, which is a policy again', async () => {
    const { stdout, code } = await cli(['policy', 'show', file('half.json', { name: 'half', extends: 'strict', ceiling: { limits: { memory: '128m' } } })])
    expect(code).toBe(0)
    await expect(stdout).toMatchFileSnapshot('golden/policy-show.json')
    expect((await cli(['policy', 'show', file('whole.json', stdout)])).stdout).toBe(stdout)
  })

  test('without a name prints what holds for a run that names none', async () => {
    const bare = parseAs<PolicyInput>((await cli(['policy', 'show', '--json'])).stdout)
    expect([bare.ceiling, bare.defaults?.limits?.memory]).toEqual([{}, '512m'])
    const operated = parseAs<PolicyInput>((await cli(['policy', 'show', '--json'], { env: { GLOVEBOX_POLICY: 'strict' } })).stdout)
    expect([operated.name, operated.ceiling?.users, operated.defaults?.limits?.memory]).toEqual(['strict', ['user'], '256m'])
  })

  test("prints the spec's own within what the operator allows", async () => {
    const both = parseAs<PolicyInput>((await cli(['policy', 'show', 'data', '--json'], { env: { GLOVEBOX_POLICY: 'strict' } })).stdout)
    expect([both.name, both.ceiling?.limits?.memory, both.defaults?.limits?.memory]).toEqual(['strict with data', '256m', '256m'])
  })
})
