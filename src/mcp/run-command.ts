import type { CallToolResult } from '@modelcontextprotocol/server'
import type * as z from 'zod'
import type { PlatformProcess } from '../contract/platform.js'
import type { Ending, Outcome } from '../contract/run.js'
import { text, toolResult } from './answers.js'
import { BoundedText } from './bounded-text.js'
import type { Connection, Context } from './connection.js'
import { beginning, type Seat } from './own-sandbox.js'
import { Progress } from './progress.js'
import { inWords } from './run-code.js'
import type { runCommandInput } from './schemas.js'

type Input = z.output<typeof runCommandInput>

export function runCommand(connection: Connection, input: Input, context: Context): Promise<CallToolResult> {
  return connection.sandbox.use(async (seat) => {
    const program = await beginning(start({ connection, input, context, seat }))
    const stop = (): void => void program.kill('it was called off').catch(() => undefined)
    context.mcpReq.signal.addEventListener('abort', stop, { once: true })
    if (context.mcpReq.signal.aborted) stop()
    try {
      feed(program, input.stdin)
      const printed = await gather(program, new Progress(context))
      return answer(printed, await program.ended, seat.note)
    } finally {
      context.mcpReq.signal.removeEventListener('abort', stop)
    }
  })
}

interface Call {
  readonly connection: Connection
  readonly input: Input
  readonly context: Context
  readonly seat: Seat
}

function start({ connection, input, context, seat }: Call): Promise<PlatformProcess> {
  const cwd = input.cwd ?? connection.cwd
  const request = {
    command: input.command,
    stdin: input.stdin !== undefined,
    output: {},
    ...(cwd !== undefined && { cwd }),
    ...(input.timeout_seconds !== undefined && { timeout: Math.round(input.timeout_seconds * 1000) }),
  }
  return connection.sandbox.platform.start(seat.id, request, { signal: context.mcpReq.signal })
}

/** A program that reads none of it, or ends first, is no failure. */
function feed(program: PlatformProcess, input: string | undefined): void {
  if (input === undefined) return
  program
    .write(Buffer.from(input))
    .then(() => program.endInput())
    .catch(() => undefined)
}

interface Printed {
  readonly stdout: BoundedText
  readonly stderr: BoundedText
}

async function gather(program: PlatformProcess, progress: Progress): Promise<Printed> {
  const printed = { stdout: new BoundedText(), stderr: new BoundedText() }
  for await (const { type, bytes } of program.output) progress.tell(printed[type].add(bytes))
  return printed
}

function answer({ stdout, stderr }: Printed, { outcome, usage }: Ending, note: string | undefined): CallToolResult {
  const code = outcome.kind === 'exited' || outcome.kind === 'not-started' ? outcome.code : undefined
  const structured = {
    outcome: outcome.kind,
    ...(code !== undefined && { exit_code: code }),
    stdout: stdout.text,
    ...(stdout.cut > 0 && { stdout_cut: stdout.cut }),
    stderr: stderr.text,
    ...(stderr.cut > 0 && { stderr_cut: stderr.cut }),
    wall_ms: Math.round(usage.wallMs),
    ...(note !== undefined && { note }),
  }
  const parts = [
    note === undefined ? '' : `note: ${note}`,
    stdout.text.trimEnd(),
    stderr.text === '' ? '' : `stderr:\n${stderr.text.trimEnd()}`,
    stdout.cut + stderr.cut > 0 ? 'note: output was cut; send it to a file below /workspace and read that with read_file, offset by offset.' : '',
    verdict(outcome),
  ]
  return toolResult({ blocks: [text(parts.filter((part) => part !== '').join('\n'))], structured, isError: outcome.kind !== 'exited' })
}

/** That a program exits with another code than 0 is for its caller to judge; whatever else ends it is an error. */
function verdict(outcome: Outcome): string {
  if (outcome.kind === 'exited') return `exit code ${outcome.code}`
  const next = {
    'timed-out': ' Do less in one call, or give a larger timeout_seconds.',
    'not-started': ' Look with run_command (command -v NAME) at which programs there are.',
  }
  return `${outcome.kind}: ${inWords(outcome)}.${outcome.kind in next ? next[outcome.kind as keyof typeof next] : ''}`
}
