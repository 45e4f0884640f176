import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inflateSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { cliPath } from '../cli/cli.js'
import { dataTemplateAtHand } from '../templates/data.js'
import { testUnless } from '../unless.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const example = join(root, 'examples/csv-chart')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const section = /## Run code, see the chart\n([\s\S]*?)\n## /.exec(readme)?.[1] ?? ''
const blocks = [...section.matchAll(/```(\w*)\n([\s\S]*?)```/g)].map(([, language, text]) => ({ language, text: text ?? '' }))

test('the README shows the code of the example', () => {
  expect(blocks.map((block) => block.language)).toEqual(['python', 'sh', ''])
  expect(blocks[0]?.text).toBe(readFileSync(join(example, 'chart.py'), 'utf8'))
})

const data = await dataTemplateAtHand()

testUnless(data.why ?? false, { timeout: 180_000 })('its command makes a chart of the CSV, as the README says', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gbx-csv-'))
  try {
    cpSync(example, folder, { recursive: true })
    const [build, chart] = (blocks[1]?.text ?? '')
      .trim()
      .split('\n')
      .map((command) => runIn(folder, command))
    expect(build).toMatchObject({ status: 0 })
    expect(chart).toMatchObject({ status: 0, stdout: blocks[2]?.text })
    expect(readdirSync(join(folder, 'charts')).sort()).toEqual(['result-1.html', 'result-1.table.json', 'result-2.chart.json', 'result-2.png', 'totals.csv'])
    const shown = JSON.parse(readFileSync(join(folder, 'charts/result-2.chart.json'), 'utf8')) as Record<string, unknown>
    expect(shown).toMatchObject({
      type: 'bar',
      title: 'Sales by region',
      y: { label: 'sales (k€)', unit: 'k€' },
      series: [{ label: 'north' }, { label: 'south' }],
    })
    const png = readFileSync(join(folder, 'charts/result-2.png'))
    expect([png.readUInt32BE(16) > 400, png.readUInt32BE(20) > 300]).toEqual([true, true])
    expect(shadesOf(png)).toBeGreaterThan(50)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

function runIn(folder: string, command: string): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command.replace(/^glovebox/, `"${process.execPath}" "${cliPath}"`)], {
    cwd: folder,
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

/** How many different bytes its pixels have: an empty sheet has a handful. */
function shadesOf(png: Buffer): number {
  const parts: Buffer[] = []
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)))
  }
  return new Set(inflateSync(Buffer.concat(parts))).size
}
