import type { PlatformProcess, SandboxInfo } from '../../contract/platform.js'
import type { Ending } from '../../contract/run.js'
import { orStopped, textOf } from '../attached-program.js'
import { type Surroundings, withPlatform } from '../choose-platform.js'
import { type ExecFlags, parseExecFlags } from '../exec-flags.js'
import { exitCodeOf, exitCodes, signalExitCode } from '../exit-codes.js'
import { openInput } from '../input.js'
import { Stopped, untilAborted } from '../interrupts.js'
import { openOwnTerminal } from '../own-terminal.js'
import { printJson, say } from '../print.js'
import { findSandbox } from '../sandbox-reference.js'
import { sit } from '../seat.js'
import { type Captured, type Cursor, captureOutput, ReaderGone, startLine, streamOutput, writeOut } from '../streams.js'
import { explainOutcome, roundTimes } from '../words.js'

/** A program in a sandbox that lasts. Resolves to its exit code; the sandbox stays. */
export async function exec(sandbox: string, argv: readonly string[], flags: ExecFlags): Promise<number> {
  const request = parseExecFlags(argv, flags)
  if (flags.detach) return withPlatform('kept', (surroundings) => leaveRunning({ sandbox, request, flags }, surroundings))
  if (flags.tty) return sitIn({ sandbox, request, name: argv[0] ?? '' })
  return withPlatform('kept', (surroundings) => stayWith({ sandbox, request, flags, name: argv[0] ?? '' }, surroundings))
}

type Request = ReturnType<typeof parseExecFlags>

interface Order {
  readonly sandbox: string
  readonly request: Request
  readonly flags: ExecFlags
}

/** Prints its pid, and leaves it to the sandbox. */
async function leaveRunning({ sandbox, request, flags }: Order, { platform, signal }: Surroundings): Promise<number> {
  const { id } = await findSandbox(platform, sandbox, signal)
  const program = await platform.start(id, { ...request, background: true }, { signal })
  if (program.pid === 0) return tellUnstarted(await program.ended, { id, flags })
  program.unref()
  if (flags.json) await printJson({ id, pid: program.pid, ...(flags.tag !== undefined && { tag: flags.tag }) })
  else await writeOut(`${program.pid}\n`)
  return exitCodes.ok
}

async function tellUnstarted({ outcome }: Ending, { id, flags }: { readonly id: string; readonly flags: ExecFlags }): Promise<number> {
  if (flags.json) await printJson({ id, outcome })
  else if (outcome.kind === 'not-started') say(outcome.reason)
  return exitCodeOf(outcome)
}

/** At our own terminal. */
export async function sitIn({ sandbox, request, name }: { readonly sandbox: string; readonly request: Request; readonly name: string }): Promise<number> {
  const terminal = openOwnTerminal()
  return withPlatform('kept', async ({ platform, interrupts, signal }) => {
    const { id } = await findSandbox(platform, sandbox, signal)
    const program = await platform.start(id, { ...request, terminal: terminal.size, stdin: true }, { signal })
    using _attached = interrupts.attach({
      interrupt: () => void program.signal('SIGINT').catch(() => undefined),
      kill: () => void program.kill('interrupted twice').catch(() => undefined),
    })
    try {
      return await Promise.race([sit(program, { terminal, name }), untilAborted(signal)])
    } catch (error) {
      await leave(program)
      throw error
    } finally {
      terminal.takeBack()
      process.stdin.pause()
    }
  })
}

async function stayWith({ sandbox, request, flags, name }: Order & { readonly name: string }, { platform, interrupts, signal }: Surroundings): Promise<number> {
  const input = openInput()
  const info = await findSandbox(platform, sandbox, signal)
  const program = await platform.start(info.id, { ...request, stdin: input !== undefined, output: {} }, { signal })
  const cursor: Cursor = { isMidLine: false }
  try {
    return await orStopped(finish(program, { info, flags, name, cursor, signal }), { interrupts, program, input })
  } catch (error) {
    if (!(error instanceof Stopped)) startLine(cursor)
    await leave(program)
    if (error instanceof ReaderGone) return signalExitCode('SIGPIPE')
    throw error
  } finally {
    input?.close()
  }
}

/** We go before it ended: nobody would read it, and nobody would end it. What a program that has ended left running stays, as it does in the sandbox's own shell. */
async function leave(program: PlatformProcess): Promise<void> {
  program.ended.catch(() => undefined)
  await program.kill('its caller is gone').catch(() => undefined)
}

interface Running {
  readonly info: SandboxInfo
  readonly flags: ExecFlags
  readonly name: string
  readonly cursor: Cursor
  readonly signal: AbortSignal
}

async function finish(program: PlatformProcess, { info, flags, name, cursor, signal }: Running): Promise<number> {
  if (flags.json) {
    const [captured, ending] = await Promise.all([captureOutput(program), program.ended])
    signal.throwIfAborted()
    await printJson(toReport(info.id, ending, captured))
    return exitCodeOf(ending.outcome)
  }
  const [{ outcome }] = await Promise.all([program.ended, streamOutput(program, cursor)])
  signal.throwIfAborted()
  const explanation = explainOutcome(outcome, name)
  if (explanation !== undefined) {
    startLine(cursor)
    say(explanation)
  }
  return exitCodeOf(outcome)
}

function toReport(id: string, { outcome, truncated, usage }: Ending, captured: Captured): object {
  return { id, outcome, ...textOf('stdout', captured.stdout), ...textOf('stderr', captured.stderr), truncated, usage: roundTimes(usage) }
}
