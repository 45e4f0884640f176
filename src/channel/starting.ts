/** From START to its answer: the gate, and programs that wait there to be told what to become. */
import type { Run, StartResult } from './run.js'
import { encodeTold, type ToldRequest } from './start-payload.js'

export interface StartOptions {
  /**
   * Called with the program's pid, as seen in the cell, while it waits with everything done but its execve. When this resolves the program runs; when it
   * rejects the program is killed, and `start` rejects with the same error once nothing of it is left. Not called when the program fails before.
   */
  readonly atGate?: (pid: number) => Promise<void>
  /**
   * When it aborts before the answer, the run is killed. `start` resolves as ever, once nothing of it is left: by then the warden has told whether
   * the program ran, or how it ended before.
   */
  readonly giveUp?: AbortSignal
}

/** With a gate for certain. */
export type GatedOptions = StartOptions & Required<Pick<StartOptions, 'atGate'>>

/** A program at its gate that does not know yet what it is to become. */
export interface ReadyProgram {
  /** False once it was launched, dropped, or ended by another. */
  readonly isWaiting: boolean
  /** As a start; undefined when it never ran: it waits no more, was ended on its way or changed by another, or cannot be told that much. */
  launch(told: ToldRequest, options?: Pick<StartOptions, 'giveUp'>): Promise<StartResult | undefined>
  /** Resolves when nothing of it is left. Quiet when it waits no more. */
  drop(): Promise<void>
}

/** How long the news of a death at the gate may take. */
const newsMs = 250

/** What another guest or the kernel killed at its gate looks like nothing that was demanded. It never ran, and how it ended is on its way. */
async function endsByItself(run: Run): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const patience = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, newsMs, false)
  })
  const ended = run.started.then(
    () => true,
    () => false,
  )
  try {
    return await Promise.race([ended, patience])
  } finally {
    clearTimeout(timer)
  }
}

/** Whether it may be released; it is not when it was over before. */
async function lookAtGate(run: Run, atGate: (pid: number) => Promise<void>): Promise<boolean> {
  const pid = await run.gated
  if (pid === undefined) return false
  try {
    // Before its release a run is answered only when it, or the channel, is over.
    await Promise.race([atGate(pid), run.started])
  } catch (error) {
    if (run.isDoomed || (await endsByItself(run))) return false
    // A channel that is over has taken the run along.
    await run.kill().catch(() => {})
    throw error
  }
  return true
}

/** What is to be killed is, before the answer. */
async function orKill<T>(run: Run, giveUp: AbortSignal | undefined, answer: () => Promise<T>): Promise<T> {
  // Whoever waits for the run is told when the channel is over.
  const kill = (): void => void run.kill().catch(() => {})
  giveUp?.addEventListener('abort', kill, { once: true })
  if (giveUp?.aborted) kill()
  try {
    const result = await answer()
    if (run.isDoomed) await run.kill()
    return result
  } finally {
    giveUp?.removeEventListener('abort', kill)
  }
}

/** What became of a start, which is killed when it is given up. */
export function answerOf(run: Run, { atGate, giveUp }: StartOptions): Promise<StartResult> {
  return orKill(run, giveUp, async () => {
    if (atGate && (await lookAtGate(run, atGate))) run.release()
    return await run.started
  })
}

/** The program once it waits at its gate; undefined when it does not come about. */
export async function readyAt(run: Run, { atGate, giveUp }: GatedOptions): Promise<ReadyProgram | undefined> {
  const isReady = await orKill(run, giveUp, () => lookAtGate(run, atGate))
  return isReady && run.isAtGate ? new WaitingProgram(run) : undefined
}

class WaitingProgram implements ReadyProgram {
  readonly #run: Run

  constructor(run: Run) {
    this.#run = run
  }

  get isWaiting(): boolean {
    return this.#run.isAtGate
  }

  async launch(told: ToldRequest, options: Pick<StartOptions, 'giveUp'> = {}): Promise<StartResult | undefined> {
    const payload = encodeTold(told)
    const run = this.#run
    if (!payload || !run.isAtGate) return undefined
    run.ref()
    run.release(payload)
    const result = await answerOf(run, options)
    return !result.started && result.stage === 'set-up' && !run.isDoomed ? undefined : result
  }

  async drop(): Promise<void> {
    if (this.#run.isAtGate) await this.#run.kill()
  }
}
