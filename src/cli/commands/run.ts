import { createPlatform } from '../../compose.js'
import type { Platform, PlatformProcess, SandboxInfo } from '../../contract/platform.js'
import type { Ending } from '../../contract/run.js'
import { exitCodeOf, signalExitCode } from '../exit-codes.js'
import { forwardInput, type Input, openInput } from '../input.js'
import { type Interrupts, Stopped, untilAborted, watchInterrupts } from '../interrupts.js'
import { printJson, say } from '../print.js'
import { parseRunFlags, type RunFlags } from '../run-flags.js'
import { type Captured, type Cursor, captureOutput, ReaderGone, startLine, streamOutput } from '../streams.js'
import { explainOutcome, explainUnenforced, roundTimes } from '../words.js'

/** A fresh sandbox, one program, gone. Resolves to our exit code when nothing of it is left. */
export async function run(argv: readonly string[], flags: RunFlags): Promise<number> {
  const { spec, request } = parseRunFlags(argv, flags)
  const input = openInput()
  using interrupts = watchInterrupts()
  await using platform = createPlatform()
  const info = await platform.create(spec, { signal: interrupts.signal })
  if (!flags.json && !flags.quiet) sayIfAny(explainUnenforced(info.unenforced))

  const program = await platform.start(info.id, { ...request, stdin: input !== undefined, output: {} }, { signal: interrupts.signal })
  const cursor = { isMidLine: false }
  try {
    const finished = finish({ program, info, flags, cursor, name: argv[0] ?? '' })
    return await orStopped(finished, { interrupts, platform, program, input, id: info.id })
  } catch (error) {
    if (!(error instanceof Stopped)) startLine(cursor)
    throw error
  } finally {
    input?.close()
  }
}

interface Running {
  readonly program: PlatformProcess
  readonly info: SandboxInfo
  readonly flags: RunFlags
  readonly cursor: Cursor
  readonly name: string
}

async function finish({ program, info, flags, cursor, name }: Running): Promise<number> {
  if (flags.json) {
    const [captured, ending] = await Promise.all([captureOutput(program), program.ended])
    await printJson(toReport(info, ending, captured))
    return exitCodeOf(ending.outcome)
  }
  const streamed = streamOutput(program, cursor)
  try {
    const [ending] = await Promise.all([program.ended, streamed])
    const explanation = explainOutcome(ending.outcome, name)
    if (explanation !== undefined) startLine(cursor)
    sayIfAny(explanation)
    return exitCodeOf(ending.outcome)
  } catch (error) {
    if (!(error instanceof ReaderGone)) throw error
    program.ended.catch(() => undefined)
    await program.kill('its reader is gone')
    return signalExitCode('SIGPIPE')
  }
}

interface Stoppable {
  readonly interrupts: Interrupts
  readonly platform: Platform
  readonly program: PlatformProcess
  readonly input: Input | undefined
  readonly id: string
}

/** Lets input and Ctrl-C reach the program; when we are told to stop or the input breaks, closes the sandbox and throws what it was. */
async function orStopped(finished: Promise<number>, { interrupts, platform, program, input, id }: Stoppable): Promise<number> {
  interrupts.attach({
    interrupt: () => void program.signal('SIGINT').catch(() => undefined),
    kill: () => void program.kill('interrupted twice').catch(() => undefined),
  })
  const broken = input === undefined ? [] : [untilBroken(forwardInput(input, program))]
  try {
    return await Promise.race([finished, untilAborted(interrupts.signal), ...broken])
  } finally {
    finished.catch(() => undefined)
    await platform.close(id)
  }
}

/** Rejects when the forwarding does; that it is done is no news. */
function untilBroken(forwarded: Promise<void>): Promise<never> {
  return new Promise((_, reject) => {
    forwarded.catch(reject)
  })
}

function toReport(info: SandboxInfo, ending: Ending, captured: Captured) {
  return {
    id: info.id,
    outcome: ending.outcome,
    ...textOf('stdout', captured.stdout),
    ...textOf('stderr', captured.stderr),
    truncated: ending.truncated,
    usage: roundTimes(ending.usage),
    driver: info.driver,
    tier: info.tier,
    unenforced: info.unenforced,
  }
}

/** The text, each invalid sequence as U+FFFD; and, only when that lost something, the bytes themselves as base64. */
function textOf(name: 'stdout' | 'stderr', bytes: Buffer): Record<string, string> {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  return Buffer.from(text).equals(bytes) ? { [name]: text } : { [name]: text, [`${name}Base64`]: bytes.toString('base64') }
}

function sayIfAny(line: string | undefined): void {
  if (line !== undefined) say(line)
}
