import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inflateSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { cli, cliPath } from '../cli/cli.js'
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

const probe = await cli(['code', '-q', '-c', 'import pandas, matplotlib'])

testUnless(probe.code === 0 ? false : `pandas and matplotlib are not both here: ${probe.stderr.trim().split('\n').at(-1) ?? ''}`, { timeout: 180_000 })(
  'its command makes a chart of the CSV, as the README says',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'gbx-csv-'))
    try {
      cpSync(example, folder, { recursive: true })
      const command = (blocks[1]?.text ?? '').trim().replace(/^glovebox/, `"${process.execPath}" "${cliPath}"`)
      const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd: folder, encoding: 'utf8' })
      expect({ status, stdout, stderr }).toMatchObject({ status: 0, stdout: blocks[2]?.text })
      expect(readdirSync(join(folder, 'charts')).sort()).toEqual(['result-1.html', 'result-1.table.json', 'result-2.chart.json', 'result-2.png', 'totals.csv'])
      const chart = JSON.parse(readFileSync(join(folder, 'charts/result-2.chart.json'), 'utf8')) as Record<string, unknown>
      expect(chart).toMatchObject({
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
  },
)

/** How many different bytes its pixels have: an empty sheet has a handful. */
function shadesOf(png: Buffer): number {
  const parts: Buffer[] = []
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)))
  }
  return new Set(inflateSync(Buffer.concat(parts))).size
}
