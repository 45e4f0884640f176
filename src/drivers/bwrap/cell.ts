import type { Duplex } from 'node:stream'
import type { Cell, CellUsage, GuestUser } from '../../contract/driver.js'
import { findProcesses, killProcess, parentOf } from '../../sys/processes.js'
import type { SpawnedProcess } from '../../sys/spawn.js'
import { workdir } from './arguments.js'

export interface CellParts {
  readonly process: SpawnedProcess
  readonly users: readonly GuestUser[]
  usage(): Promise<CellUsage>
  /** Gives back what was taken for the cell; called once, when none of its processes is left. */
  release(): Promise<void>
}

/** How long a warden may take to end by itself. */
const graceMs = 2000

/**
 * A running cell. Its process is bwrap's monitor, which exits when the kernel has reaped the warden; the kernel does so when the
 * cell's pid namespace is empty. So the monitor's exit proves that no process of the cell is left, unless it was the monitor that was killed.
 */
export class BwrapCell implements Cell {
  readonly channel: Duplex
  readonly users: readonly GuestUser[]
  readonly workdir = workdir
  readonly #parts: CellParts
  #closed: Promise<void> | undefined

  constructor(parts: CellParts) {
    this.#parts = parts
    this.channel = parts.process.channel
    this.users = parts.users
  }

  diagnosis(): string {
    return this.#parts.process.diagnosis()
  }

  usage(): Promise<CellUsage> {
    return this.#parts.usage()
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    const { process, release } = this.#parts
    await endProcess(process)
    process.channel.destroy()
    await release()
  }
}

/** Ends the warden by ending its stdin, or by force; resolves when its whole pid namespace is gone. */
export async function endProcess(process: SpawnedProcess, options: { readonly graceMs?: number } = {}): Promise<void> {
  const ended = process.wait().then(() => true)
  process.channel.on('error', ignoreBrokenChannel)
  process.channel.end()
  // Nobody listens any more, and a warden that cannot write would not end.
  process.channel.resume()
  if (await within(ended, options.graceMs ?? graceMs)) return
  killInside(process.pid)
  if (await within(ended, graceMs)) return
  process.signal('SIGKILL')
  await ended
}

/** The warden rather than its monitor: only then does the monitor's exit say that all is gone. */
function killInside(monitor: number): void {
  for (const pid of findProcesses((candidate) => parentOf(candidate) === monitor)) killProcess(pid)
}

async function within(ended: Promise<boolean>, milliseconds: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, milliseconds, false)
  })
  try {
    return await Promise.race([ended, late])
  } finally {
    clearTimeout(timer)
  }
}

/** The end of the channel is told by its `end` and `close`; how it broke adds nothing when it is being closed. */
function ignoreBrokenChannel(): void {}
