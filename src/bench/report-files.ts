import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderChart } from './chart.js'
import { renderMarkdown } from './markdown.js'
import type { Report } from './report.js'

export interface Files {
  readonly folder: string
  readonly name: string
  /** Instead of the bars of a benchmark. */
  readonly chart?: string
}

/** Writes NAME.json, NAME.md and, where there is something to show, NAME.svg; tells which. */
export function writeReport(report: Report, { folder, name, chart = renderChart(report) }: Files): readonly string[] {
  mkdirSync(folder, { recursive: true })
  const files: readonly (readonly [string, string])[] = [
    [`${name}.json`, `${JSON.stringify(report, null, 2)}\n`],
    [`${name}.md`, renderMarkdown(report)],
    ...(chart === undefined ? [] : [[`${name}.svg`, chart] as const]),
  ]
  return files.map(([file, text]) => {
    const path = join(folder, file)
    writeFileSync(path, text)
    return path
  })
}
