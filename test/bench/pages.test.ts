import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { renderChart } from '../../src/bench/chart.js'
import { renderLines } from '../../src/bench/line-chart.js'
import { amount, renderMarkdown } from '../../src/bench/markdown.js'
import type { Report } from '../../src/bench/report.js'
import { renderSummary } from '../../src/bench/summary.js'
import { report, row, table } from './report.js'

const cold = table({
  rows: [row('plain spawn of python3', 10, { ratio: 1 }), row('glovebox: cold', 18, { ratio: 1.8 }), row('a <peer> & more', 195, { ratio: 19.5 })],
  missing: [{ name: 'another', why: 'says\nno | never' }],
  goals: [
    { text: 'quick', state: 'missed', measured: 2.5 },
    { text: 'slow', state: 'met', measured: 1 },
    { text: 'other', state: 'unmeasured', why: 'not here' },
  ],
})
const shots = table({ section: 'one-shot', title: 'Shots', rows: [row('plain spawn of python3', 12, { ratio: 1 }), row('glovebox: shot', 5, { ratio: 0.42 })] })
const idle = table({ section: 'idle', title: 'Idle', figures: [{ name: 'one', value: 0.434, unit: 'MiB' }] })

describe('the page', () => {
  test('is what its golden file says', async () => {
    await expect(renderMarkdown(report(cold, shots, idle))).toMatchFileSnapshot('golden/page.md')
  })

  test('keeps what a program said in one cell', () => {
    expect(renderMarkdown(report(cold))).toContain('| another | says no \\| never |')
  })

  test.each([
    [0.0312, '0.031'],
    [0.5, '0.50'],
    [12.345, '12.35'],
    [123.45, '123.5'],
    [3, '3'],
    [1234.5, '1235'],
  ])('%d is written as %s', (value, text) => {
    expect(amount(value)).toBe(text)
  })
})

describe('the chart', () => {
  test('is what its golden file says', async () => {
    await expect(renderChart(report(cold, shots, idle))).toMatchFileSnapshot('golden/chart.svg')
  })

  test('has the quickest first, and one bar of the plain spawn', () => {
    const chart = renderChart(report(cold, shots)) ?? ''
    const names = ['glovebox: shot', 'plain spawn of python3', 'glovebox: cold', 'a &lt;peer&gt; &amp; more']
    expect([...chart.matchAll(/text-anchor="end"[^>]*>([^<]*)</g)].map(([, name]) => name)).toEqual(names)
  })

  test('of nothing is none', () => {
    expect(renderChart(report(idle))).toBeUndefined()
  })
})

describe('the chart of what changes over time', () => {
  const panels = [
    {
      title: 'Memory',
      unit: 'MiB',
      lines: [
        {
          name: 'a <line> & more',
          points: [
            [0, 10],
            [30, 42],
            [60, 20],
          ] as const,
        },
      ],
    },
    { title: 'Nothing', unit: '', lines: [{ name: 'none', points: [] }] },
  ]

  test('is what its golden file says', async () => {
    await expect(renderLines('Over time', panels, { 'warm-up over': 15 })).toMatchFileSnapshot('golden/lines.svg')
  })

  test('has every point within its panel, and the highest value below its top', () => {
    const [, points = ''] = /<polyline points="([^"]+)"/.exec(renderLines('Over time', panels)) ?? []
    const places = points.split(' ').map((point) => point.split(',').map(Number))
    expect(places.map(([x]) => x)).toEqual([70, 497, 924])
    expect(places.every(([, y = 0]) => y > 56 && y < 56 + 150)).toBe(true)
  })
})

describe('the summary', () => {
  test('is what its golden file says', async () => {
    await expect(renderSummary(report(cold, shots, idle))).toMatchFileSnapshot('golden/summary.md')
  })

  test('in README is that of the latest report', () => {
    const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
    const [, shown] = /<!-- bench:begin -->\n([\s\S]*?)<!-- bench:end -->/.exec(read('README.md')) ?? []
    expect(shown).toBe(renderSummary(JSON.parse(read('bench/results/latest.json')) as Report))
  })
})
