/** Metrics as text: the Prometheus format 0.0.4, or OpenMetrics 1.0 where the reader asks for it. */
import type { Family, HistogramSample, Labels, Sample } from './registry.js'

type Format = 'prometheus' | 'openmetrics'

const contentTypes: Readonly<Record<Format, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

export interface Exposition {
  readonly contentType: string
  readonly text: string
}

export function expose(families: readonly Family[], accept?: string): Exposition {
  const format = formatFor(accept)
  const lines = families.flatMap((family) => linesOf(family, format))
  const end = format === 'openmetrics' ? ['# EOF'] : []
  return { contentType: contentTypes[format], text: [...lines, ...end, ''].join('\n') }
}

/** Text is what everyone reads; OpenMetrics is for those who prefer it. */
function formatFor(accept = ''): Format {
  const weights = accept.split(',').map((part) => {
    const [type = '', ...parameters] = part.split(';').map((each) => each.trim().toLowerCase())
    const weight = Number(parameters.find((each) => each.startsWith('q='))?.slice(2) ?? '1')
    return { type, weight: Number.isFinite(weight) ? weight : 0 }
  })
  const weightOf = (type: string): number => Math.max(0, ...weights.filter((each) => each.type === type).map(({ weight }) => weight))
  const open = weightOf('application/openmetrics-text')
  return open > 0 && open >= weightOf('text/plain') ? 'openmetrics' : 'prometheus'
}

function linesOf(family: Family, format: Format): readonly string[] {
  const { name, type, help } = family
  // In OpenMetrics a counter is called what its samples are called without _total; before that both had the same name.
  const told = type === 'counter' && format === 'prometheus' ? `${name}_total` : name
  const head = [`# HELP ${told} ${escapeHelp(help, format)}`, `# TYPE ${told} ${type}`]
  if (family.type === 'histogram') return [...head, ...family.samples.flatMap((sample) => histogramLines(name, sample, { bounds: family.buckets, format }))]
  const suffix = type === 'counter' ? '_total' : ''
  return [...head, ...family.samples.map((sample) => sampleLine(`${name}${suffix}`, sample))]
}

interface HistogramFormat {
  readonly bounds: readonly number[]
  readonly format: Format
}

function histogramLines(name: string, { labels, cumulated, sum }: HistogramSample, { bounds, format }: HistogramFormat): readonly string[] {
  const all = cumulated.at(-1) ?? 0
  const buckets = [...bounds.map((bound) => boundText(bound, format)), '+Inf'].map((le, place) =>
    sampleLine(`${name}_bucket`, { labels: { ...labels, le }, value: cumulated[place] ?? all }),
  )
  return [...buckets, sampleLine(`${name}_sum`, { labels, value: sum }), sampleLine(`${name}_count`, { labels, value: all })]
}

/** OpenMetrics wants a bound to look like the number with a point that it is. */
function boundText(bound: number, format: Format): string {
  return format === 'openmetrics' && Number.isInteger(bound) ? `${bound}.0` : String(bound)
}

function sampleLine(name: string, { labels, value }: Sample): string {
  return `${name}${labelText(labels)} ${Number.isFinite(value) ? value : infiniteText(value)}`
}

function infiniteText(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  return value > 0 ? '+Inf' : '-Inf'
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeValue(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escapeValue(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}

function escapeHelp(help: string, format: Format): string {
  const escaped = help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
  return format === 'openmetrics' ? escaped.replaceAll('"', '\\"') : escaped
}
