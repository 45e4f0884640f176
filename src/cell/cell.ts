import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Beneath, Bystander, Cell, CellLayer, CellLiners, CellRun, CellUsage, GuestUser, PostureSubject, RunLimits } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { Faults } from '../contract/faults.js'
import type { Limits } from '../contract/limits.js'
import type { Expectation, Posture } from '../contract/posture.js'
import type { CellCgroup } from '../sys/cell-cgroup.js'
import { processorTimeBelow } from '../sys/processor-time.js'
import { childrenOf } from '../sys/posture/process-tree.js'
import { killProcess } from '../sys/processes.js'
import type { SpawnedProcess } from '../sys/spawn.js'
import { workdir } from './arguments.js'
import type { CellInspection } from './cell-inspection.js'
import type { CellLimits } from './cell-limits.js'
import type { Lease } from './lease.js'
import type { Turnstile } from './turnstile.js'

export interface CellParts {
  readonly process: SpawnedProcess
  readonly users: readonly GuestUser[]
  readonly layers: readonly CellLayer[]
  readonly env: Readonly<Record<string, string>>
  readonly beneath: ((index: number) => Promise<Beneath>) | undefined
  readonly limits: CellLimits
  readonly inspection: CellInspection
  readonly usedOnDisk: () => Promise<number | undefined>
  /** What else there is to say when it ended early; empty when nothing. */
  readonly remark?: (() => string) | undefined
  /** What stops its guests all at once; undefined where there are no cgroups. */
  readonly cgroup: Pick<CellCgroup, 'freeze' | 'thaw' | 'killFrozen'> | undefined
  /** Host pids that are still the cell's, asked for when the monitor cannot vouch for their end. */
  readonly remains: () => readonly number[]
  /** Its end waits for those of others, where many end at once: none is to be taken for stuck because the machine is busy. */
  readonly inTurn: Turnstile
  /** Something to do while it ends. */
  readonly clear: Lease['clear']
  /** Gives back what was taken for the cell; called once, when none of its processes is left. */
  readonly release: Lease['release']
  readonly faults?: Faults | undefined
}

/** How long a warden may take to end by itself. */
const graceMs = 2000

/**
 * A running cell. Its process is the runtime's monitor, which exits when the kernel has reaped the warden; the kernel does so when the
 * cell's pid namespace is empty. So the monitor's exit proves that no process of the cell is left, unless it was the monitor that was killed.
 */
export class NamespaceCell implements Cell {
  readonly channel: Duplex
  readonly users: readonly GuestUser[]
  readonly workdir = workdir
  readonly layers: readonly CellLayer[]
  readonly env: Readonly<Record<string, string>>
  readonly beneath?: (index: number) => Promise<Beneath>
  readonly #parts: CellParts
  #closed: Promise<void> | undefined
  #isPaused = false

  constructor(parts: CellParts) {
    this.#parts = parts
    this.channel = parts.process.channel
    this.users = parts.users
    this.layers = parts.layers
    this.env = parts.env
    if (parts.beneath) this.beneath = parts.beneath
  }

  get liners(): CellLiners | undefined {
    return this.#parts.inspection.liners(this.#parts.limits.current())
  }

  get expects(): readonly Expectation[] {
    return this.#parts.inspection.expects(this.#parts.limits.current())
  }

  diagnosis(): string {
    return [this.#parts.process.diagnosis(), this.#parts.remark?.() ?? ''].filter((words) => words !== '').join('\n')
  }

  beginRun(limits: RunLimits): CellRun {
    this.#parts.inspection.expectProgram()
    return this.#parts.limits.beginRun(limits)
  }

  limit(limits: Limits): Promise<void> {
    return this.#parts.limits.limit(limits)
  }

  posture(subject: PostureSubject): Promise<readonly Posture[]> {
    return this.#parts.inspection.posture(subject)
  }

  async usage(): Promise<CellUsage> {
    const diskBytes = await this.#parts.usedOnDisk()
    return { ...this.#parts.limits.usage(), diskBytes }
  }

  worked(): number | undefined {
    const { limits, process } = this.#parts
    return limits.usage().cpuMs ?? (process.pid > 0 ? processorTimeBelow(process.pid) : undefined)
  }

  async pause(besides: readonly Bystander[] = []): Promise<void> {
    const { cgroup } = this.#parts
    if (cgroup === undefined) throw new SandboxError('unsupported', 'programs cannot be paused: no cgroup holds this cell', { hint: 'glovebox doctor' })
    const groups = besides.flatMap(({ group }) => group ?? [])
    if (groups.length < besides.length) throw new SandboxError('unsupported', 'this cell has no cgroups that tell one run from another')
    this.#isPaused = true
    await cgroup.freeze(groups)
  }

  async resume(): Promise<void> {
    await this.#parts.cgroup?.thaw()
    this.#isPaused = false
  }

  close(): Promise<void> {
    // One that did not come to its end can be asked for it again.
    this.#closed ??= this.#close().catch((error: unknown) => {
      this.#closed = undefined
      throw error
    })
    return this.#closed
  }

  async #close(): Promise<void> {
    const { process, inspection, cgroup, remains, inTurn, clear, release, faults } = this.#parts
    // What is frozen may be unable to end, and would keep its pid namespace from ending.
    if (this.#isPaused) cgroup?.killFrozen()
    else setImmediate(clear)
    const [isCertain] = await inTurn(() => Promise.all([endProcess(process, remains), inspection.close()]))
    faults?.('close/ended')
    await release({ isCertain })
  }
}

/** Ends the warden by ending its stdin, or by force; resolves when no process of the cell is left, to whether the monitor vouches for that. */
export async function endProcess(process: SpawnedProcess, remains: () => readonly number[]): Promise<boolean> {
  const { channel } = process
  const ended = process.wait()
  const orphans = endOrphans(process, remains)
  channel.on('error', ignoreBrokenChannel)
  channel.end()
  // Nobody listens any more, and a warden that cannot write would not end.
  channel.resume()
  if (!(await within(ended, graceMs))) killInside(process.pid)
  if (!(await within(ended, graceMs))) process.signal('SIGKILL')
  // Whatever is left of it may still hold the streams, whose end is waited for.
  if (!(await within(ended, graceMs))) await killRemains(remains)
  const end = await ended
  channel.destroy()
  await orphans
  if (end.signal === null) return true
  await killRemains(remains)
  return false
}

/** What outlives a killed monitor may hold its streams, so that their end is not to be waited for. */
export async function endOrphans(process: SpawnedProcess, remains: () => readonly number[]): Promise<void> {
  const { signal } = await process.gone
  if (signal !== null) await killRemains(remains)
}

/** A monitor that was killed leaves the rest to the kernel, which takes its time. */
async function killRemains(remains: () => readonly number[]): Promise<void> {
  for (let pids = remains(); pids.length > 0; pids = remains()) {
    for (const pid of pids) killProcess(pid)
    await sleep(5)
  }
}

/** The warden rather than its monitor: only then does the monitor's exit say that all is gone. */
function killInside(monitor: number): void {
  for (const pid of childrenOf(monitor)) killProcess(pid)
}

async function within(ended: Promise<unknown>, milliseconds: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, milliseconds, false)
  })
  try {
    return await Promise.race([ended.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}

/** The end of the channel is told by its `end` and `close`; how it broke adds nothing when it is being closed. */
function ignoreBrokenChannel(): void {}
