import type { CallToolResult } from '@modelcontextprotocol/server'
import type * as z from 'zod'
import type { CodeEnding, PlatformExecution } from '../contract/code.js'
import type { Outcome } from '../contract/run.js'
import { linkTo, text, toolResult, uriOf } from './answers.js'
import { BoundedText } from './bounded-text.js'
import { type Connection, type Context, remember } from './connection.js'
import { beginning, type Seat } from './own-sandbox.js'
import { Progress } from './progress.js'
import { ShownResults } from './shown-results.js'
import type { runCodeInput } from './schemas.js'

type Input = z.output<typeof runCodeInput>

export function runCode(connection: Connection, input: Input, context: Context): Promise<CallToolResult> {
  return connection.sandbox.use((seat) => execute({ connection, input, context, seat }))
}

interface Call {
  readonly connection: Connection
  readonly input: Input
  readonly context: Context
  readonly seat: Seat
}

async function execute({ connection, input, context, seat }: Call): Promise<CallToolResult> {
  const { code } = connection.sandbox.platform
  const { signal } = context.mcpReq
  const inContext = await beginning(contextFor({ connection, input, seat, context }))
  const request = {
    code: input.code,
    language: input.language,
    ...(inContext !== undefined && { context: inContext }),
    ...(input.timeout_seconds !== undefined && { timeout: Math.round(input.timeout_seconds * 1000) }),
  }
  const execution = await beginning(code.execute(seat.id, request, { signal }))
  const shown = await watch(execution, context)
  const ending = await execution.ended
  remember(connection, ending.artifacts)
  return answer({ shown, ending, note: seat.note })
}

/** The context that the call is to run in, where it is not the default one of its language. */
async function contextFor({ connection, input, seat, context }: Call): Promise<string | undefined> {
  const { code } = connection.sandbox.platform
  const options = { signal: context.mcpReq.signal }
  if (!input.restart && connection.cwd === undefined) return undefined
  const name = `mcp-${input.language === 'typescript' ? 'javascript' : input.language}`
  const contexts = await code.listContexts(seat.id, options)
  const own = contexts.find((each) => (connection.cwd === undefined ? each.isDefault && speaks(each.language, input.language) : each.name === name))
  if (own === undefined)
    return connection.cwd === undefined ? undefined : (await code.createContext(seat.id, { language: input.language, cwd: connection.cwd, name }, options)).id
  if (input.restart) await code.restartContext(seat.id, own.id, options)
  return own.id
}

function speaks(one: string, other: string): boolean {
  const plain = (name: string): string => (name === 'typescript' ? 'javascript' : name)
  return plain(one) === plain(other)
}

interface Shown {
  readonly stdout: BoundedText
  readonly stderr: BoundedText
  readonly results: ShownResults
}

/** Reads to the end, whatever comes: what is not read would hold the code back. A call that is called off interrupts it. */
async function watch(execution: PlatformExecution, context: Context): Promise<Shown> {
  const shown = { stdout: new BoundedText(), stderr: new BoundedText(), results: new ShownResults() }
  const progress = new Progress(context)
  const stop = (): void => void execution.interrupt().catch(() => undefined)
  context.mcpReq.signal.addEventListener('abort', stop, { once: true })
  if (context.mcpReq.signal.aborted) stop()
  try {
    for await (const event of execution.events) {
      if (event.type === 'result') shown.results.add(event.result)
      else if (event.type !== 'ask') progress.tell(shown[event.type].add(event.bytes))
    }
  } finally {
    context.mcpReq.signal.removeEventListener('abort', stop)
  }
  return shown
}

interface Answered {
  readonly shown: Shown
  readonly ending: CodeEnding
  readonly note: string | undefined
}

function answer({ shown, ending, note }: Answered): CallToolResult {
  const { stdout, stderr, results } = shown
  const { error, outcome } = ending
  const structured = {
    status: ending.status,
    execution: ending.number,
    ...(results.mainText !== undefined && { text: results.mainText }),
    stdout: stdout.text,
    ...(stdout.cut > 0 && { stdout_cut: stdout.cut }),
    stderr: stderr.text,
    ...(stderr.cut > 0 && { stderr_cut: stderr.cut }),
    ...(ending.outputDropped !== undefined && { output_dropped: ending.outputDropped }),
    results: results.told,
    ...(ending.resultsDropped !== undefined && { results_dropped: ending.resultsDropped }),
    ...(error && { error: { name: error.name, value: error.value, traceback: error.traceback, ...placeOf(error) } }),
    ...(ending.code !== undefined && { exit_code: ending.code }),
    ...(outcome && { outcome: inWords(outcome) }),
    state_kept: ending.isStateKept,
    artifacts: ending.artifacts.map(({ path, change, size, mime, hash }) => ({ path, uri: uriOf(path), change, size, mime, sha256: hash })),
    wall_ms: Math.round(ending.wallMs),
    ...(note !== undefined && { note }),
  }
  const links = ending.artifacts.slice(0, mostLinks).map(({ path, size, mime, change }) => linkTo({ path, size, mime, description: `${change} by this call` }))
  return toolResult({ blocks: [text(words({ shown, ending, note })), ...results.blocks, ...links], structured, isError: isFailure(ending) })
}

const mostLinks = 50

function placeOf({ line, column }: { readonly line?: number; readonly column?: number }): { line?: number; column?: number } {
  return { ...(line !== undefined && { line }), ...(column !== undefined && { column }) }
}

function isFailure({ status, code }: CodeEnding): boolean {
  return status === 'exit' ? (code ?? 0) !== 0 : status !== 'ok'
}

/** The same for whoever reads only text. */
function words({ shown: { stdout, stderr, results }, ending, note }: Answered): string {
  const parts = [
    note === undefined ? '' : `note: ${note}`,
    stdout.text === '' ? '' : stdout.text.trimEnd(),
    stderr.text === '' ? '' : `stderr:\n${stderr.text.trimEnd()}`,
    ...results.texts,
    stdout.cut + stderr.cut > 0 ? 'note: output was cut; write it to a file below /workspace and read that with read_file, offset by offset.' : '',
    verdict(ending),
    ...results.remarks.map((remark) => `note: ${remark}`),
    ending.artifacts.length === 0 ? '' : `files: ${ending.artifacts.map(({ path, size }) => `${path} (${size} bytes)`).join(', ')}`,
    ending.resultsDropped === undefined
      ? ''
      : `note: ${ending.resultsDropped} more results were dropped; display fewer, or write them to a file below /workspace.`,
    ending.outputDropped === undefined ? '' : `note: ${ending.outputDropped} bytes that it printed before it was killed were dropped.`,
    ending.artifactsMissing === undefined ? '' : `note: files are not, or not all, told: ${ending.artifactsMissing}`,
  ]
  const said = parts.filter((part) => part !== '').join('\n')
  return said === '' ? 'ok, nothing was printed' : said
}

const kept = 'Variables from before are still there.'
const lost = 'Variables and imports are gone; files are still there. Define what is needed again.'

/** What went wrong, and what to do next. */
function verdict({ status, error, code, outcome, isStateKept, language }: CodeEnding): string {
  const memory = isStateKept ? kept : lost
  switch (status) {
    case 'ok':
      return ''
    case 'error':
      if (error === undefined || error.name === 'ExitStatus') return `exit status ${code ?? 1}. ${memory}`
      return `${error.traceback.trimEnd() || `${error.name}: ${error.value}`}\n\n${language} failed with ${error.name}${error.line === undefined ? '' : ` in line ${error.line}`}. ${memory} Mend the code and run it again.`
    case 'exit':
      return `exit code ${code ?? 0}. ${memory}`
    case 'interrupted':
      return `interrupted. ${memory}`
    case 'timed-out':
      return `It ran longer than its time. ${memory} Do less in one call, or give a larger timeout_seconds.${error ? `\n${error.traceback.trimEnd()}` : ''}`
    case 'crashed':
      return `The interpreter ended: ${outcome === undefined ? 'nobody saw how' : inWords(outcome)}. ${memory}`
  }
}

export function inWords(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'exited':
      return `exit code ${outcome.code}`
    case 'signaled':
      return `ended by ${outcome.signal}`
    case 'timed-out':
      return outcome.by === 'cpu' ? `used more processor time than ${outcome.limitMs} ms` : `ran longer than ${outcome.limitMs} ms`
    case 'out-of-memory':
      return `needed more memory than ${outcome.limitBytes} bytes; use less, for example by reading data in pieces`
    case 'output-limit':
      return `printed more than ${outcome.limitBytes} bytes; print less, or to a file below /workspace`
    case 'killed':
      return `killed: ${outcome.reason}`
    case 'not-started':
      return outcome.reason
  }
}
