import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Report } from '../../src/bench/report.js'
import { cli } from './cli.js'

describe('bench', () => {
  let folder = ''
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'glovebox-bench-test-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  test('measures a section, prints its report and writes it where it is told', async () => {
    const out = join(folder, 'new')
    const { code, stdout, stderr } = await cli(['bench', '--json', '--only', 'warm', '--rounds', '1', '--out', out])
    const report = JSON.parse(stdout) as Report
    // Whether a goal is met is the machine's affair; that the code says so is ours.
    const isMissed = report.tables.some(({ goals }) => goals.some(({ state }) => state === 'missed'))
    expect({ code, stderr }).toEqual({ code: isMissed ? 1 : 0, stderr: '' })
    expect(report.tables.map(({ section, rows, missing }) => [section, rows.map(({ samples }) => samples), missing])).toEqual([['warm', [4, 4, 1, 1], []]])
    expect(JSON.parse(readFileSync(join(out, 'bench.json'), 'utf8'))).toEqual(report)
    expect(readFileSync(join(out, 'bench.md'), 'utf8')).toContain('| glovebox: true in a running sandbox |')
    expect(existsSync(join(out, 'bench.svg'))).toBe(false)
  })

  test.each([
    [['--only', 'cold', '--only', 'nothing'], '--only: there is no section "nothing"; there are cold,'],
    [['--rounds', '0'], '--rounds: expected a whole number from 1 to 99999, got "0"'],
    [['--rounds', '2.5'], '--rounds: expected a whole number from 1 to 99999, got "2.5"'],
  ])('%j is refused before anything is measured', async (flags, message) => {
    const { code, stdout, stderr } = await cli(['bench', ...flags])
    expect({ code, stdout }).toEqual({ code: 125, stdout: '' })
    expect(stderr).toContain(message)
  })

  test('a place that cannot be written to is named', async () => {
    const file = join(folder, 'file')
    writeFileSync(file, '')
    const { code, stderr } = await cli(['bench', '--only', 'warm', '--rounds', '1', '--out', join(file, 'below')])
    expect(code).toBe(125)
    expect(stderr).toContain('--out: ')
  })
})
