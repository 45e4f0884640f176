import { SandboxError } from '../contract/errors.js'
import type { PlatformProcess } from '../contract/platform.js'
import type { ProcessInfo, ProcessName } from '../contract/processes.js'
import { printable } from '../policy/refusal.js'
import type { RunPlan } from '../policy/run.js'
import { type AsideProcess, OwnedProcess, unstartedAside } from './aside-process.js'
import { type KeptActivity, KeptProcess } from './kept-process.js'
import { type ProcessRow, treeUsage } from './process-table-usage.js'
import { RunningProgram } from './running-program.js'
import type { UnstartedProgram } from './unstarted-program.js'
import { rounded } from './usage.js'

/** The latest ended ones that are told of. */
const mostEnded = 100
/** What is kept of the output of all that have ended, together; the latest one's is kept whatever it is. */
const mostEndedBytes = 8 * 2 ** 20

export interface ProcessTableOptions {
  /** Every process of the cell, looked at now. */
  readonly rows: () => Promise<readonly ProcessRow[]>
  readonly activity: () => KeptActivity
  /** What is kept of the output of all that run, together. */
  readonly mostRingBytes: () => number
}

/** The programs that a sandbox keeps, and the latest of them that have ended. */
export class ProcessTable {
  readonly #options: ProcessTableOptions
  readonly #living = new Set<KeptProcess>()
  /** The oldest first. */
  readonly #ended: KeptProcess[] = []
  /** Of those that run, and of those that are being started. */
  readonly #tags = new Set<string>()

  constructor(options: ProcessTableOptions) {
    this.#options = options
  }

  /** Starts a program, and keeps it where that is planned. What did not start is not kept: its caller alone is told. */
  async start<Program extends PlatformProcess>(plan: RunPlan, launch: () => Promise<Program>): Promise<PlatformProcess> {
    if (!plan.kept) return launch()
    const { program, kept } = await this.#launch(plan, launch)
    return kept?.view({ replay: true, follow: true }) ?? program
  }

  /** The same for one with an aside, which its owner alone reads. */
  async startAside(plan: RunPlan, launch: () => Promise<RunningProgram | UnstartedProgram>): Promise<AsideProcess> {
    const { program } = await this.#launch(plan, launch)
    return program instanceof RunningProgram ? new OwnedProcess(program, this.#options.activity()) : unstartedAside(program)
  }

  async list(): Promise<readonly ProcessInfo[]> {
    const rows = this.#living.size === 0 ? [] : await this.#options.rows()
    return [...this.#ended, ...this.#living].map((kept) => infoOf(kept, rows))
  }

  attach(name: ProcessName, outlook: { readonly replay: boolean; readonly follow: boolean }): PlatformProcess {
    const isNamed = (kept: KeptProcess): boolean => (typeof name === 'number' ? kept.pid === name : kept.tag === name)
    const found = [...this.#living].find(isNamed) ?? this.#ended.findLast(isNamed)
    if (!found) throw new SandboxError('not-found', `there is no process ${typeof name === 'number' ? name : `'${printable(name)}'`} that is kept`)
    this.#options.activity().touch()
    return found.view(outlook)
  }

  async #launch<Program>(plan: RunPlan, launch: () => Promise<Program>): Promise<{ readonly program: Program; readonly kept: KeptProcess | undefined }> {
    const tag = plan.kept?.tag
    this.#claim(tag)
    let kept: KeptProcess | undefined
    try {
      const program = await launch()
      if (program instanceof RunningProgram) kept = this.#keep(program, plan)
      return { program, kept }
    } finally {
      if (!kept && tag !== undefined) this.#tags.delete(tag)
    }
  }

  #claim(tag: string | undefined): void {
    if (tag === undefined) return
    if (this.#tags.has(tag)) throw new SandboxError('conflict', `tag: a process with the tag '${printable(tag)}' is running`)
    this.#tags.add(tag)
  }

  #keep(program: RunningProgram, plan: RunPlan): KeptProcess {
    const kept = new KeptProcess({ program, plan, activity: this.#options.activity() })
    this.#living.add(kept)
    this.#shareOut()
    kept.ended.then(
      () => this.#retire(kept),
      () => this.#release(kept),
    )
    return kept
  }

  #release(kept: KeptProcess): void {
    this.#living.delete(kept)
    this.#shareOut()
    if (kept.tag !== undefined) this.#tags.delete(kept.tag)
  }

  /** In equal parts: one that prints much takes nothing away from those that print little. */
  #shareOut(): void {
    const sharing = [...this.#living].filter((kept) => !kept.isOwned)
    const share = Math.floor(this.#options.mostRingBytes() / Math.max(1, sharing.length))
    for (const kept of sharing) kept.holdAtMost(share)
  }

  #retire(kept: KeptProcess): void {
    this.#release(kept)
    this.#ended.push(kept)
    if (this.#ended.length > mostEnded) this.#ended.shift()
    let total = 0
    for (const each of this.#ended.toReversed()) {
      total += each.heldBytes
      if (total > mostEndedBytes && each !== kept) each.forgetOutput()
    }
  }
}

function infoOf(kept: KeptProcess, rows: readonly ProcessRow[]): ProcessInfo {
  const { pid, tag, command, user, isTerminal, startedAt, ending } = kept
  const about = { pid, ...(tag !== undefined && { tag }), command, user, isTerminal, startedAt }
  if (ending) {
    const { cpuUserMs, cpuSystemMs } = ending.usage
    return { ...about, state: 'ended', cpuMs: rounded(cpuUserMs + cpuSystemMs), memoryBytes: 0, processes: 0, ending }
  }
  // It may have ended a moment ago, with the news still on their way.
  const { cpuMs, ...now } = treeUsage(rows, pid) ?? { state: 'sleeping', cpuMs: 0, memoryBytes: 0, processes: 0 }
  return { ...about, ...now, cpuMs: rounded(kept.countedCpuMs() ?? cpuMs) }
}
