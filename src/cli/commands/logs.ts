import { SandboxError } from '../../contract/errors.js'
import type { Platform, PlatformProcess } from '../../contract/platform.js'
import type { ProcessInfo, ProcessName } from '../../contract/processes.js'
import type { OutputEvent } from '../../contract/run.js'
import { textOf } from '../attached-program.js'
import { type Surroundings, withPlatform } from '../choose-platform.js'
import { exitCodes } from '../exit-codes.js'
import { untilAborted } from '../interrupts.js'
import { PrefixedLines } from '../prefixed-lines.js'
import { printJson, say } from '../print.js'
import { findSandbox } from '../sandbox-reference.js'
import { writeTo } from '../streams.js'

export interface LogsFlags {
  readonly follow?: true
  readonly json?: true
}

interface Logged {
  readonly name: string
  readonly pid: number
  readonly tag?: string | undefined
  readonly view: PlatformProcess
}

/** What its processes printed, as far as it is kept; with --follow also what they print from now on, until they end. */
export async function logs(sandbox: string, process: string | undefined, flags: LogsFlags): Promise<number> {
  return withPlatform('kept', async (surroundings) => {
    const { platform, signal } = surroundings
    const attaching = { platform, signal, flags }
    const { id } = await findSandbox(platform, sandbox, signal)
    const logged = process === undefined ? await attachToAll(id, attaching) : [await attachTo(id, process, attaching)]
    if (logged.length === 0 && !flags.json) say('nothing that runs in it is kept; exec --detach starts what is')
    const shown = Promise.all(logged.map((each) => show(each, { flags, isAlone: logged.length === 1 })))
    await Promise.race([shown, untilAborted(signal)])
    return exitCodes.ok
  })
}

interface Attaching extends Pick<Surroundings, 'platform' | 'signal'> {
  readonly flags: LogsFlags
}

async function attachToAll(id: string, { platform, signal, flags }: Attaching): Promise<Logged[]> {
  const all = await platform.processes.list(id, { signal })
  return Promise.all(
    all.map(async ({ pid, tag }: ProcessInfo) => ({ pid, tag, name: tag ?? String(pid), view: await view(platform, { id, process: pid, flags, signal }) })),
  )
}

/** A number is a pid; where there is none, it may be a tag like any other word. */
async function attachTo(id: string, process: string, { platform, signal, flags }: Attaching): Promise<Logged> {
  const tagged = async (): Promise<Logged> => {
    const found = await view(platform, { id, process, flags, signal })
    return { pid: found.pid, tag: process, name: process, view: found }
  }
  if (!/^[1-9]\d{0,9}$/.test(process)) return tagged()
  try {
    const found = await view(platform, { id, process: Number(process), flags, signal })
    return { pid: found.pid, name: process, view: found }
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== 'not-found') throw error
    return tagged()
  }
}

interface Wanted {
  readonly id: string
  readonly process: ProcessName
  readonly flags: LogsFlags
  readonly signal: AbortSignal
}

function view(platform: Platform, { id, process, flags, signal }: Wanted): Promise<PlatformProcess> {
  return platform.processes.attach(id, process, { replay: true, follow: flags.follow === true, signal })
}

interface Showing {
  readonly flags: LogsFlags
  readonly isAlone: boolean
}

/** One alone is shown byte for byte; of several each line says whose it is. */
async function show(logged: Logged, { flags, isAlone }: Showing): Promise<void> {
  const { view: program, name, pid, tag } = logged
  program.ended.catch(() => undefined)
  const lines = new PrefixedLines(name)
  const about = { pid, ...(tag !== undefined && { tag }) }
  for await (const event of program.output) {
    if (flags.json) await printJson({ ...about, ...eventInJson(event) })
    else {
      if ((event.dropped ?? 0) > 0) say(`${name}: ${event.dropped} bytes of ${event.type} were dropped here`)
      await writeTo(process[event.type], isAlone ? event.bytes : lines.take(event))
    }
  }
  if (!isAlone && !flags.json) for (const type of ['stdout', 'stderr'] as const) await writeTo(process[type], lines.rest(type))
  if (!flags.follow) return
  const { outcome } = await program.ended
  if (flags.json) await printJson({ ...about, type: 'ended', outcome })
}

/** `text`, and beside it `textBase64` where that lost something. */
function eventInJson({ type, bytes, dropped }: OutputEvent): object {
  const { stdout: text, stdoutBase64 } = textOf('stdout', Buffer.from(bytes))
  return { type, text, ...(stdoutBase64 !== undefined && { base64: stdoutBase64 }), ...(dropped !== undefined && { dropped }) }
}
