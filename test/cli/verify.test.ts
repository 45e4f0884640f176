import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { containmentCases, hostCases, serverCases } from '../../src/conformance/index.js'
import { describeVerification } from '../../src/cli/verify-matrix.js'
import { colorsFor } from '../../src/cli/print.js'
import { renderHtml } from '../../src/verify/html.js'
import type { CheckReport, VerifyReport } from '../../src/verify/report.js'
import { cli } from './cli.js'

const everything = [...containmentCases, ...serverCases, ...hostCases]

const held: CheckReport = { driver: 'bwrap', place: 'user', verdict: 'held', reason: '', observed: 'ENOENT', ms: 12 }
const failed: CheckReport = {
  ...held,
  place: 'root',
  verdict: 'failed',
  reason: 'every try must be denied',
  observed: '<script>alert(1)</script>\u001b[2J\u202e',
}

const report: VerifyReport = {
  version: '0.1.0',
  startedAt: '2026-01-02T03:04:05.000Z',
  durationMs: 61_000,
  host: { system: 'Linux 6.1 x64', uid: 0 },
  ok: false,
  counts: { cases: 2, checks: 3, held: 1, failed: 1, skipped: 1 },
  drivers: [
    { driver: 'bwrap', tier: 'process', places: { user: {}, root: {}, liner: { why: 'no liners here' } } },
    { driver: 'oci:crun', tier: 'container', why: 'no crun: crun is not on PATH', hint: 'apt-get install crun', places: { user: {}, root: {}, liner: {} } },
  ],
  cases: [
    { id: 'filesystem/one', group: 'filesystem', name: 'a promise', threats: ['F-01'], tries: 'Tries it.', means: 'It is open.', results: [held, failed] },
    {
      id: 'host/two',
      group: 'host',
      name: 'another',
      threats: ['X-05'],
      tries: 'Looks.',
      means: 'It changed.',
      results: [{ driver: 'host', verdict: 'skipped', reason: 'why not', observed: '', ms: 0 }],
    },
  ],
}

describe('verify', () => {
  test('a page for a terminal has the matrix, the failure with what it means, and what was not asked, within 80 columns', () => {
    const page = describeVerification(report, { colors: colorsFor({ isTTY: false }), columns: 80, isQuiet: false })
    expect(Math.max(...page.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
    expect(page).toMatchInlineSnapshot(`
      "glovebox 0.1.0 verify  Linux 6.1 x64, as root

                  bwrap       host
                  user  root
      filesystem  ✓ 1   ✗ 1   –
      host        –     –     –

      ✗ filesystem/one
        where     bwrap, as root
        promise   a promise
        tried     Tries it.
        wanted    every try must be denied
        observed  <script>alert(1)</script>\\x1b[2J\\u202e
        means     It is open.
        threats   F-01

      not asked
        bwrap, liner: no liners here
        oci:crun: no crun: crun is not on PATH (apt-get install crun)
        host: why not – host/two

      ✗ 1 did not hold.  2 cases, 3 checks: 1 held, 1 failed, 1 skipped, in 61 s
      "
    `)
  })

  test('a report is one page that fetches nothing and runs nothing, whatever a guest printed', () => {
    const page = renderHtml(report)
    expect(page).not.toMatch(/<script|<link|<img|src=|@import|url\(|https?:/)
    expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;')
    expect(page).not.toMatch(/[\u001b\u202e]/)
    expect(page).toContain('It is open.')
  })

  test('the cases are listed as one object', async () => {
    const { code, stdout } = await cli(['verify', '--list', '--json'])
    const { cases } = JSON.parse(stdout) as { cases: { id: string }[] }
    expect([code, cases.map(({ id }) => id).sort()]).toEqual([0, everything.map(({ id }) => id).sort()])
  })

  test('an object tells of everything that was asked', { timeout: 120_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gbx-verify-test-'))
    try {
      const html = join(folder, 'report.html')
      const { code, stdout } = await cli(['verify', '--driver', 'bwrap', '--case', 'kernel/modules', '--case', 'server/bind-address', '--json', '--html', html])
      const told = JSON.parse(stdout, (key, value: unknown) =>
        ['version', 'startedAt', 'durationMs', 'ms', 'system', 'uid', 'observed', 'why'].includes(key) ? `<${key}>` : value,
      ) as VerifyReport
      expect(code).toBe(0)
      const place = (name: string) => told.cases[0]?.results.filter((check) => check.place === name).length
      expect([place('user'), place('root'), place('liner')]).toEqual(process.getuid?.() === 0 ? [1, 1, 1] : [1, 0, 1])
      await expect(
        `${JSON.stringify({ ...told, counts: '<counts>', drivers: '<drivers>', cases: told.cases.map((each) => ({ ...each, results: each.results.slice(0, 1) })) }, undefined, 2)}\n`,
      ).toMatchFileSnapshot('golden/verify.json')
      expect(readFileSync(html, 'utf8')).toContain('server/bind-address')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('what is not there is refused by its name, before anything is asked', async () => {
    const refused = await Promise.all(
      [
        ['--group', 'moon'],
        ['--case', 'kernel/moon'],
        ['--driver', 'moon'],
      ].map((flags) => cli(['verify', ...flags])),
    )
    expect(refused.map(({ code }) => code)).toEqual([125, 125, 125])
    for (const { stderr } of refused) expect(stderr).toContain('"')
  })
})

test('docs/verify.md names every threat with its cases, and no other', () => {
  const page = readFileSync(new URL('../../docs/verify.md', import.meta.url), 'utf8')
  const told = [...page.matchAll(/^\| ([FKPNMSXA]-\d\d) \| (.+) \|$/gm)].map(([, threat = '', cases = '']) => `${threat}: ${cases.replaceAll('`', '')}`)
  const threats = new Map<string, string[]>()
  for (const { id, threats: own } of everything) for (const threat of own) threats.set(threat, [...(threats.get(threat) ?? []), id])
  expect(told.map((line) => line.split(': ')[0]).sort()).toEqual([...threats.keys()].sort())
  for (const line of told) expect(line.split(': ')[1]?.split(', ').sort(), line).toEqual(threats.get(line.split(': ')[0] ?? '')?.sort())
})
