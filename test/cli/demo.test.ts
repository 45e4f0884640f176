import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { cli, fake, parseAs } from './cli.js'
import { isBwrapReady } from './machine.js'
import { testUnless } from '../unless.js'

const stepNames = ['python', 'node', 'read', 'write', 'connect', 'grow', 'loop', 'live', 'code', 'network']

interface Step {
  readonly name: string
  readonly result: string
  readonly seen: string
  readonly plain?: string
}

interface DemoReport {
  readonly ok: boolean
  readonly driver: string
  readonly tier: string
  readonly steps: readonly Step[]
}

/** Of its own, since other demos may be on the same machine. */
const folder = mkdtempSync(join(tmpdir(), 'glovebox-test-'))
const env = { TMPDIR: folder }
afterAll(() => rmSync(folder, { recursive: true }))

const planted = () => readdirSync(folder).filter((name) => name.startsWith('glovebox-demo-'))

test('without walls the demo goes red at exactly the four refusals', async () => {
  const { code, stdout, stderr } = await cli(['demo', '--json', ...fake], { env })
  const report = parseAs<DemoReport>(stdout)
  expect({ code, stderr, ok: report.ok, names: report.steps.map((step) => step.name) }).toEqual({ code: 1, stderr: '', ok: false, names: stepNames })
  expect(report.steps.filter((step) => step.result === 'failed').map((step) => step.name)).toEqual(['read', 'write', 'connect', 'code'])
  expect(planted()).toEqual([])
})

testUnless(!isBwrapReady && 'bwrap is not ready here: ./glovebox doctor')(
  'in cells every step goes as it should, and the same done plainly gets through',
  async () => {
    const { code, stdout } = await cli(['demo', '--json', '--driver', 'bwrap'], { env })
    const report = parseAs<DemoReport>(stdout)
    const steps = new Map<string, Step>(report.steps.map((step) => [step.name, step]))
    expect({ code, ok: report.ok, driver: report.driver, tier: report.tier }).toEqual({ code: 0, ok: true, driver: 'bwrap', tier: 'process' })
    expect([...steps.values()].filter((step) => step.result === 'failed')).toEqual([])
    expect(steps.get('read')).toMatchObject({ result: 'ok', plain: 'reads it' })
    expect(steps.get('write')).toMatchObject({ result: 'ok', plain: 'writes it', seen: 'refused: Read-only file system' })
    expect(steps.get('connect')).toMatchObject({ plain: 'connects', seen: expect.stringMatching(/^refused: .*; nothing was seen$/) as unknown })
    expect(steps.get('loop')).toMatchObject({ result: 'ok', seen: 'stopped at its limit of 500 ms' })
    expect(steps.get('live')).toMatchObject({ result: 'ok', seen: 'process said 42; diff +answers +factor' })
    expect(steps.get('network')).toMatchObject(
      steps.get('network')?.result === 'not-run'
        ? { seen: expect.stringContaining('not run: ') as unknown }
        : { result: 'ok', seen: '"hello"; another refused: no rule allows it' },
    )
    expect(steps.get('code')).toMatchObject({ result: 'ok', seen: 'kept 42; refused: No such file or directory' })
    expect(planted()).toEqual([])
  },
)

testUnless(!isBwrapReady && 'bwrap is not ready here: ./glovebox doctor')(
  'for people it is a dozen lines and a frame, 80 columns, without colours in a pipe',
  async () => {
    const { code, stdout, stderr } = await cli(['demo'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = stdout.trimEnd().split('\n')
    expect(lines.length).toBe(28)
    expect(lines.filter((line) => line.length > 80)).toEqual([])
    expect(stdout).not.toContain('\u001b')
  },
)
