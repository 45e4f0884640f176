import { inflateSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { dataTemplateAtHand } from '../templates/data.js'
import { type Agent, type Block, generations } from './connections.js'

const patience = 240_000

const data = await dataTemplateAtHand()
const canChart = data.why === undefined

const csv = 'month,sales\nJan,120\nFeb,98\nMar,143\nApr,170\n'
/** Asks for a column that is not there. */
const wrong = canChart
  ? "import pandas as pd\ndf = pd.read_csv('sales.csv')\ndf['amount'].sum()"
  : "import csv\nrows = list(csv.DictReader(open('sales.csv')))\nsum(int(row['amount']) for row in rows)"
/** Goes on with what the failed call left in memory. */
const mended = canChart
  ? "ax = df.plot.bar(x='month', y='sales', title='Sales', legend=False)\nax.set_ylabel('units (k)')\ndf.describe().to_csv('summary.csv')\nint(df['sales'].sum())"
  : "open('chart.svg', 'w').write('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')\nopen('summary.csv', 'w').write('sum\\n')\nsum(int(row['sales']) for row in rows)"

const textOf = (blocks: readonly Block[]): string => blocks.flatMap((block) => block.text ?? []).join('\n')

describe.each(generations)("an agent's loop with %s", (_name, connect) => {
  test('writes a CSV, fails, reads the error, mends the code, gets the chart, lists and reads the files', { timeout: patience }, async () => {
    const agent = await connect(canChart ? ['--template', data.name] : [])
    try {
      await loop(agent)
    } finally {
      await agent.close()
    }
  })
})

async function loop(agent: Agent): Promise<void> {
  const written = await agent.call('write_file', { path: 'sales.csv', content: csv })
  expect(written.structuredContent).toEqual({ path: '/workspace/sales.csv', uri: 'sandbox:///workspace/sales.csv', size: csv.length })

  const failed = await agent.call('run_code', { code: wrong })
  expect(failed.isError).toBe(true)
  expect(failed.structuredContent).toMatchObject({ status: 'error', state_kept: true, error: { name: 'KeyError', value: "'amount'", line: 3 } })
  expect(textOf(failed.content)).toMatch(/KeyError: 'amount'[\s\S]*Variables from before are still there\. Mend the code and run it again\./)

  const done = await agent.call('run_code', { code: mended })
  expect({ isError: done.isError ?? false, text: done.structuredContent?.['text'] }).toEqual({ isError: false, text: '531' })
  expect(done.structuredContent).toMatchObject({
    status: 'ok',
    execution: 2,
    artifacts: expect.arrayContaining([expect.objectContaining({ path: '/workspace/summary.csv', mime: 'text/csv' })]),
  })
  if (canChart) expectChart(done)
  expect(done.content.filter((block) => block.type === 'resource_link').map((block) => block.uri)).toContain('sandbox:///workspace/summary.csv')

  const listed = await agent.call('list_files', {})
  const paths = (listed.structuredContent?.['entries'] as { path: string }[]).map((entry) => entry.path)
  expect(paths).toEqual(expect.arrayContaining(['/workspace/sales.csv', '/workspace/summary.csv']))
  expect((await agent.resources()).map((resource) => resource.uri)).toContain('sandbox:///workspace/summary.csv')
  const [summary] = await agent.read('sandbox:///workspace/summary.csv')
  expect(summary).toMatchObject({ uri: 'sandbox:///workspace/summary.csv', mimeType: 'text/csv', text: expect.stringContaining(canChart ? ',sales' : 'sum') })
}

function expectChart(done: { readonly content: readonly Block[]; readonly structuredContent?: Record<string, unknown> }): void {
  const image = done.content.find((block) => block.type === 'image')
  expect(image?.mimeType).toBe('image/png')
  const { width, height, shades } = pngFacts(Buffer.from(image?.data ?? '', 'base64'))
  expect(width).toBeGreaterThan(300)
  expect(height).toBeGreaterThan(200)
  // Bars, axes and letters, rather than an empty sheet.
  expect(shades).toBeGreaterThan(20)
  const results = done.structuredContent?.['results'] as {
    chart?: { type: string; title: string; series: { bars: { label: string; value: number }[] }[]; y: { unit: string } }
  }[]
  const chart = results.find((result) => result.chart)?.chart
  expect(chart).toMatchObject({ type: 'bar', title: 'Sales', y: { unit: 'k' } })
  expect(chart?.series[0]?.bars.map((bar) => bar.value)).toEqual([120, 98, 143, 170])
}

/** Its size, and how many different bytes its rows have once they are inflated. */
function pngFacts(png: Buffer): { readonly width: number; readonly height: number; readonly shades: number } {
  const parts: Buffer[] = []
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)))
  }
  return { width: png.readUInt32BE(16), height: png.readUInt32BE(20), shades: new Set(inflateSync(Buffer.concat(parts))).size }
}
