import { escapeText, round } from './svg.js'

/** What changes over time: one panel each, below each other, over the same axis. */
export interface Panel {
  readonly title: string
  readonly unit: string
  readonly lines: readonly Line[]
}

export interface Line {
  readonly name: string
  /** Seconds since the beginning, and the value then; in order. */
  readonly points: readonly (readonly [number, number])[]
}

const width = 960
const left = 70
const right = 36
const top = 56
const panelHeight = 150
const gap = 56
const colours = ['#1f7a5c', '#b4552d', '#5b6fb5'] as const

/** `marks`: moments, in seconds, that are drawn through all panels, each with its name. */
export function renderLines(title: string, panels: readonly Panel[], marks: Readonly<Record<string, number>> = {}): string {
  const seconds = Math.max(1, ...panels.flatMap(({ lines }) => lines.flatMap(({ points }) => points.map(([at]) => at))))
  const height = top + panels.length * (panelHeight + gap)
  const xOf = (at: number): number => round(left + ((width - left - right) * at) / seconds)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="16" y="24" font-size="16" font-weight="600" fill="#1a1a1a">${escapeText(title)}</text>`,
    ...panels.flatMap((panel, index) => renderPanel(panel, { y: top + index * (panelHeight + gap), xOf, seconds })),
    ...Object.entries(marks).map(([name, at]) => mark({ name, x: xOf(at), height })),
    '</svg>',
    '',
  ].join('\n')
}

interface Place {
  readonly y: number
  readonly xOf: (at: number) => number
  readonly seconds: number
}

function renderPanel({ title, unit, lines }: Panel, { y, xOf, seconds }: Place): readonly string[] {
  const most = niceAbove(Math.max(...lines.flatMap(({ points }) => points.map(([, value]) => value)), 0))
  const yOf = (value: number): number => round(y + panelHeight - (panelHeight * value) / most)
  const steps = [0, 0.25, 0.5, 0.75, 1]
  return [
    `<text x="${left}" y="${y - 8}" font-weight="600" fill="#1a1a1a">${escapeText(title)}</text>`,
    ...steps.map((step) => {
      const at = yOf(most * step)
      return `<line x1="${left}" y1="${at}" x2="${width - right}" y2="${at}" stroke="#dddddd"/><text x="${left - 6}" y="${at + 4}" text-anchor="end" fill="#666666">${tidy(most * step)}</text>`
    }),
    ...steps.map(
      (step) => `<text x="${xOf(seconds * step)}" y="${y + panelHeight + 16}" text-anchor="middle" fill="#666666">${tidy((seconds * step) / 60)} min</text>`,
    ),
    ...lines.flatMap(({ name, points }, index) => {
      const colour = colours[index % colours.length] ?? colours[0]
      const path = points.map(([at, value]) => `${xOf(at)},${yOf(value)}`).join(' ')
      return [
        `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="1.5"/>`,
        `<text x="${width - right - 240 + index * 120}" y="${y - 8}" fill="${colour}">${escapeText(`${name}${unit === '' ? '' : `, ${unit}`}`)}</text>`,
      ]
    }),
  ]
}

function mark({ name, x, height }: { readonly name: string; readonly x: number; readonly height: number }): string {
  return `<line x1="${x}" y1="${top}" x2="${x}" y2="${height - gap}" stroke="#888888" stroke-dasharray="4 3"/><text x="${x + 4}" y="${top + 12}" fill="#666666">${escapeText(name)}</text>`
}

/** 1, 2 or 5 with noughts, none below the value. */
function niceAbove(value: number): number {
  if (value <= 0) return 1
  const decade = 10 ** Math.floor(Math.log10(value))
  return decade * ([1, 2, 5, 10].find((step) => step * decade >= value) ?? 10)
}

function tidy(value: number): string {
  return `${Number(value.toPrecision(3))}`
}
