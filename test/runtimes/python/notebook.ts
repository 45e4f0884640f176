// The notebook: executions in one context, in this order, each with everything that it must give. It is data, and says nothing
// of how the code gets to the kernel: the same is run over pipes and in a cell.
import { isDeepStrictEqual } from 'node:util'
import type { Chart } from '../../../src/contract/charts.js'
import type { ExecuteOptions, Executed, Result } from './kernel.js'
import { chartEntries } from './notebook-charts.js'
import { languageEntries } from './notebook-language.js'
import { resultEntries } from './notebook-results.js'
import { decodePng } from './png.js'

export interface ExpectedResult {
  readonly isMain?: boolean
  /** Exactly, or as a pattern. */
  readonly text?: string | RegExp
  /** All types beside text/plain; told where nothing below says what they hold. */
  readonly types?: readonly string[]
  readonly values?: Readonly<Record<string, unknown>>
  readonly patterns?: Readonly<Record<string, RegExp>>
  readonly chart?: Chart
  readonly table?: unknown
  readonly hasPng?: boolean
  readonly cut?: readonly string[]
}

export interface Entry {
  readonly name: string
  readonly source: string
  /** Modules without which it is left out; `!name` where it is left out with it. */
  readonly needs?: readonly string[]
  readonly given?: ExecuteOptions
  readonly status?: 'ok' | 'error' | 'exit'
  readonly code?: number
  readonly stdout?: string | RegExp
  readonly stderr?: string | RegExp
  readonly results?: readonly ExpectedResult[]
  readonly order?: readonly string[]
  readonly error?: {
    readonly name: string
    readonly value?: string | RegExp
    readonly traceback?: string | RegExp
    readonly line?: number
    readonly column?: number
  }
}

export const notebook: readonly Entry[] = [...languageEntries, ...resultEntries, ...chartEntries]

const neededModules = [...new Set(notebook.flatMap((entry) => entry.needs ?? []).map((name) => name.replace('!', '')))]

/** Shows as its value the names of those modules that are there. */
export const presenceSource = `import importlib.util\n[name for name in ${JSON.stringify(neededModules)} if importlib.util.find_spec(name)]`

/** Why it cannot be run with these modules; undefined when it can. */
export function lackOf(entry: Entry, present: readonly string[]): string | undefined {
  for (const need of entry.needs ?? []) {
    if (need.startsWith('!') && present.includes(need.slice(1))) return `${need.slice(1)} is installed`
    if (!need.startsWith('!') && !present.includes(need)) return `${need} is not installed`
  }
  return undefined
}

function fits(found: unknown, expected: unknown): boolean {
  return expected instanceof RegExp ? typeof found === 'string' && expected.test(found) : isDeepStrictEqual(found, expected)
}

/** Names of sources relative to this one, so that entries can be left out: `<code N>`, and `<code N-1>` for the one before. */
function renumbered(executed: Executed): Executed {
  const rename = (text: string) =>
    text.replaceAll(/<code (\d+)>/g, (_, number) => `<code N${Number(number) === executed.number ? '' : Number(number) - executed.number}>`)
  const { error } = executed
  return { ...executed, stderr: rename(executed.stderr), ...(error && { error: { ...error, traceback: rename(error.traceback), full: rename(error.full) } }) }
}

/** Everything that is not as expected, in words. */
export function problemsOf(entry: Entry, told: Executed): string[] {
  const problems: string[] = []
  const executed = renumbered(told)
  const compare = (what: string, found: unknown, expected: unknown) => {
    if (!fits(found, expected)) problems.push(`${what} is ${JSON.stringify(found)} and not ${expected instanceof RegExp ? expected : JSON.stringify(expected)}`)
  }
  compare('status', executed.status, entry.status ?? (entry.error ? 'error' : 'ok'))
  compare('code', executed.code, entry.code)
  compare('stdout', executed.stdout, entry.stdout ?? '')
  compare('stderr', executed.stderr, entry.stderr ?? '')
  if (entry.order) compare('order', executed.order, entry.order)
  if (!entry.error) compare('error', executed.error, undefined)
  for (const [key, expected] of Object.entries(entry.error ?? {})) compare(`error.${key}`, executed.error?.[key as 'name'], expected)
  compare('number of results', executed.results.length, entry.results?.length ?? 0)
  entry.results?.forEach((expected, index) => {
    const result = executed.results[index]
    if (result) problems.push(...resultProblems(result, expected).map((problem) => `result ${index}: ${problem}`))
  })
  return problems
}

function resultProblems(result: Result, expected: ExpectedResult): string[] {
  const problems: string[] = []
  const values: Record<string, unknown> = { ...expected.values, ...expected.patterns }
  if (expected.chart) values['application/vnd.glovebox.chart+json'] = expected.chart
  if (expected.table) values['application/vnd.glovebox.table+json'] = expected.table
  if (expected.hasPng) values['image/png'] = /^[A-Za-z0-9+/]+=*$/
  for (const [type, value] of Object.entries(values)) {
    if (!fits(result.data[type], value))
      problems.push(`${type} is ${JSON.stringify(result.data[type])} and not ${value instanceof RegExp ? value : JSON.stringify(value)}`)
  }
  const types = ['text/plain', ...Object.keys(values), ...(expected.types ?? [])].sort()
  if (!isDeepStrictEqual(Object.keys(result.data).sort(), types)) problems.push(`it has ${Object.keys(result.data)} and not ${types}`)
  if (result.isMain !== (expected.isMain ?? true)) problems.push(`isMain is ${result.isMain}`)
  if (expected.text !== undefined && !fits(result.data['text/plain'], expected.text))
    problems.push(`it says ${result.data['text/plain']} and not ${expected.text}`)
  if (!isDeepStrictEqual(result.cut, expected.cut ?? [])) problems.push(`cut is ${result.cut}`)
  if (expected.hasPng && problems.length === 0) problems.push(...pictureProblems(result.data['image/png'] as string))
  return problems
}

function pictureProblems(base64: string): string[] {
  const { width, height, colours } = decodePng(Buffer.from(base64, 'base64'))
  const problems = width >= 100 && height >= 100 && width <= 2000 && height <= 2000 ? [] : [`the picture has ${width} × ${height} pixels`]
  return colours > 2 ? problems : [...problems, `the picture has ${colours} colours`]
}
