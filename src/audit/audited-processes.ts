import type { PlatformProcess } from '../contract/platform.js'
import type { PlatformProcesses } from '../contract/processes.js'
import type { Ending } from '../contract/run.js'
import type { Acts, Begun } from './acts.js'
import { shownValue } from './shown.js'

interface Audited {
  readonly acts: Acts
  readonly sandbox: string
  /** Whoever started it may write to it without a further word. */
  readonly isOwn: boolean
}

/** A run that was begun in the trail: how it ended is told when it has, by whoever looks at it. Its output is passed on untouched. */
export async function startedRun(begun: Begun, start: () => Promise<PlatformProcess>): Promise<PlatformProcess> {
  try {
    const process = await start()
    tellEnding(process, begun)
    return process
  } catch (error) {
    begun.failed(error)
    throw error
  }
}

export function tellEnding({ pid, ended }: PlatformProcess, begun: Begun): void {
  ended.then(
    (ending) => begun.ok({ details: { pid, ...shownEnding(ending) } }),
    (error: unknown) => begun.failed(error),
  )
}

function shownEnding({ outcome, usage, truncated }: Ending) {
  const { wallMs, cpuUserMs, cpuSystemMs, memoryPeakBytes, outputBytes } = usage
  const used = { wallMs: Math.round(wallMs), cpuMs: Math.round(cpuUserMs + cpuSystemMs), memoryPeakBytes, outputBytes }
  return { outcome: shownValue(outcome), usage: used, ...(truncated && { truncated }) }
}

/** A program whose signals and end by hand are in the trail. Bytes to it are not: one record says that somebody else than who started it writes to it. */
export function auditedProcess(process: PlatformProcess, { acts, sandbox, isOwn }: Audited): PlatformProcess {
  const { pid } = process
  let attached: Promise<void> | undefined
  const writing = async (): Promise<void> => {
    acts.check('run')
    if (!isOwn) await (attached ??= acts.done('run.attach', { sandbox, details: { pid } }))
  }
  return {
    pid,
    output: process.output,
    ended: process.ended,
    write: async (bytes) => {
      await writing()
      await process.write(bytes)
    },
    endInput: async () => {
      await writing()
      await process.endInput()
    },
    signal: (name) => acts.doing('run.signal', { sandbox, details: { pid, signal: shownValue(name) } }, { effect: () => process.signal(name) }),

    resize: async (size) => {
      acts.check('run')
      return process.resize(size)
    },
    kill: (reason) => acts.doingAnyway('run.kill', { sandbox, details: { pid, reason: reason ?? null } }, { effect: () => process.kill(reason) }),
    ref: () => process.ref(),
    unref: () => process.unref(),
  }
}

export function auditedProcesses(processes: PlatformProcesses, acts: Acts): PlatformProcesses {
  return {
    list: (id, options) => acts.seeing(() => processes.list(id, options)),
    attach: async (id, process, options) =>
      auditedProcess(await acts.seeing(() => processes.attach(id, process, options)), { acts, sandbox: id, isOwn: false }),
  }
}
