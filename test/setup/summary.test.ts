import { describe, expect, it } from 'vitest'

interface SuiteResult {
  readonly name: string
  readonly passed: number
  readonly failures: readonly { readonly name: string; readonly message: string }[]
  readonly skips: readonly { readonly name: string; readonly reason: string }[]
  readonly seconds: number
  readonly output: string
  readonly unsteady?: SuiteResult['failures']
}

const { countLine, suiteBlock, summaryTable } = (await import(new URL('../../scripts/testing/summary.mjs', import.meta.url).href)) as {
  countLine: (results: readonly SuiteResult[]) => string
  suiteBlock: (result: SuiteResult) => string
  summaryTable: (results: readonly SuiteResult[]) => string
}

const { filesToRepeat, repeatUnsteady } = (await import(new URL('../../scripts/testing/unsteady.mjs', import.meta.url).href)) as {
  filesToRepeat: (failures: SuiteResult['failures']) => string[]
  repeatUnsteady: (first: SuiteResult, repeat: (files: string[]) => Promise<SuiteResult>) => Promise<SuiteResult>
}

const good: SuiteResult = { name: 'unit', passed: 12, failures: [], skips: [], seconds: 3.21, output: 'noise' }
const bad: SuiteResult = {
  name: 'conformance',
  passed: 1,
  failures: [{ name: 'close twice is quiet', message: 'it was not' }],
  skips: [{ name: 'limits', reason: 'no cgroup is at hand' }],
  seconds: 100,
  output: 'first\nlast\n',
}

describe('the end of npm test', () => {
  it('is one line of counts, without skips when there are none', () => {
    expect(countLine([good])).toBe('12 passed, 0 failed')
    expect(countLine([good, bad])).toBe('13 passed, 1 failed, 1 skipped')
  })

  it('shows a table above it', () => {
    expect(summaryTable([good, bad]).split('\n')).toEqual([
      'suite        passed  failed  skipped     time',
      'unit             12       0        0    3.2 s',
      'conformance       1       1        1  100.0 s',
    ])
  })

  it('tells a failure with its message and the end of the output, and a skip with its reason', () => {
    const [limits] = bad.skips
    expect(suiteBlock({ ...good, skips: [...bad.skips, { name: 'root', reason: limits?.reason ?? '' }] })).toContain(
      '  skipped 2, the first limits: no cgroup is at hand\n',
    )
    expect(suiteBlock(good)).toBe('✓ unit: 12 passed, 0 failed in 3.2 s\n')
    expect(suiteBlock(bad).split('\n')).toEqual([
      '✗ conformance: 1 passed, 1 failed, 1 skipped in 100.0 s',
      '  skipped limits: no cgroup is at hand',
      '  FAILED close twice is quiet',
      '    it was not',
      '  the end of its output:',
      '    | first',
      '    | last',
      '',
    ])
  })
})

describe('a test that fails beside others', () => {
  const failure = (name: string) => ({ name, message: 'too late' })
  const [slow, other] = [failure('test/cli/sh.test.ts > is slow'), failure('test/cli/sh.test.ts > is wrong')]
  const first: SuiteResult = { ...good, failures: [slow, other] }

  it('is run once more, alone: what passes then is told as unsteady, what does not has failed', async () => {
    const asked: string[][] = []
    const result = await repeatUnsteady(first, (files) => {
      asked.push(files)
      return Promise.resolve({ ...good, passed: 1, failures: [other], seconds: 1 })
    })
    expect(asked).toEqual([['test/cli/sh.test.ts']])
    expect(result).toMatchObject({ passed: 13, failures: [other], unsteady: [slow], seconds: 4.21 })
    expect(countLine([result])).toBe('13 passed, 1 failed, 1 unsteady')
    expect(suiteBlock(result)).toContain('  UNSTEADY (failed beside others, passed alone) test/cli/sh.test.ts > is slow\n    too late\n')
  })

  it('has no second chance where it is a wall, where much else failed, or where it is no test', async () => {
    expect(filesToRepeat([slow, failure('test/conformance/bwrap-engine.test.ts > isolation-files/secrets')])).toEqual([])
    expect(filesToRepeat(['a', 'b', 'c', 'd'].map((name) => failure(`test/cli/${name}.test.ts > x`)))).toEqual([])
    expect(filesToRepeat([slow, failure('unit')])).toEqual([])
    expect(await repeatUnsteady({ ...good, failures: [failure('unit')] }, () => Promise.reject(new Error('was run')))).toMatchObject({ passed: 12 })
  })
})
