/** Fills README's table from a report: `node bench/readme.mjs` takes the latest one. */
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { renderSummary } from '../dist/bench/index.js'

const readme = new URL('../README.md', import.meta.url)
const latest = new URL('./results/latest.json', import.meta.url)
const block = /(<!-- bench:begin -->\n)[\s\S]*?(<!-- bench:end -->)/

export function fillReadme(report) {
  const text = readFileSync(readme, 'utf8')
  if (!block.test(text)) throw new Error('README.md has no place for the table: <!-- bench:begin --> and <!-- bench:end -->')
  writeFileSync(
    readme,
    text.replace(block, (_all, begin, end) => `${begin}${renderSummary(report)}${end}`),
  )
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) fillReadme(JSON.parse(readFileSync(latest, 'utf8')))
