import type { Report, Row } from './report.js'
import { distinctRows } from './summary.js'
import { escapeText, round } from './svg.js'

const charted = ['cold', 'one-shot']
const width = 960
const nameWidth = 420
const valueWidth = 70
const lineHeight = 26
const top = 64
const bottom = 34

/** Bars of how much of a plain spawn each takes, on a logarithmic axis, the quickest first. Undefined when there is nothing to show. */
export function renderChart(report: Report): string | undefined {
  const rows = distinctRows(report.tables.filter(({ section }) => charted.includes(section)).flatMap((table) => table.rows))
  if (rows.length < 2) return undefined
  const ratios = rows.map(({ ratio = 1 }) => ratio)
  const least = 10 ** Math.floor(Math.log10(Math.min(...ratios)))
  const most = 10 ** Math.ceil(Math.log10(Math.max(...ratios) * 1.01))
  const space = width - nameWidth - valueWidth
  const xOf = (ratio: number): number => nameWidth + (space * Math.log10(ratio / least)) / Math.log10(most / least)
  const height = top + rows.length * lineHeight + bottom
  const decades = Array.from({ length: Math.round(Math.log10(most / least)) + 1 }, (_, index) => least * 10 ** index)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="13">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="16" y="26" font-size="16" font-weight="600" fill="#1a1a1a">Hello in Python, output in hand: how much of a plain spawn it takes</text>`,
    `<text x="16" y="46" fill="#666666">median of one run, side by side; logarithmic; shorter is faster</text>`,
    ...decades.map((ratio) => axisLine({ x: xOf(ratio), ratio, height })),
    ...rows.map((row, index) => bar({ row, y: top + index * lineHeight, from: nameWidth, to: xOf(row.ratio ?? 1) })),
    '</svg>',
    '',
  ].join('\n')
}

function axisLine({ x, ratio, height }: { readonly x: number; readonly ratio: number; readonly height: number }): string {
  const stroke = ratio === 1 ? '#888888' : '#dddddd'
  const base = height - bottom
  return `<line x1="${round(x)}" y1="${top - 6}" x2="${round(x)}" y2="${base}" stroke="${stroke}"/><text x="${round(x)}" y="${base + 18}" text-anchor="middle" fill="#666666">${Number(ratio.toPrecision(1))} ×</text>`
}

interface Bar {
  readonly row: Row
  readonly y: number
  readonly from: number
  readonly to: number
}

function bar({ row, y, from, to }: Bar): string {
  const fill = row.name.startsWith('glovebox') ? '#1f7a5c' : row.name.startsWith('plain') ? '#888888' : '#b9c4d0'
  const length = Math.max(1, to - from)
  return [
    `<text x="${from - 8}" y="${y + 16}" text-anchor="end" fill="#1a1a1a">${escapeText(row.name)}</text>`,
    `<rect x="${from}" y="${y + 3}" width="${round(length)}" height="${lineHeight - 8}" rx="2" fill="${fill}"/>`,
    `<text x="${round(from + length + 6)}" y="${y + 16}" fill="#1a1a1a">${(row.ratio ?? 1).toFixed(2)}</text>`,
  ].join('')
}
