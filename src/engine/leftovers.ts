import type { CellRun } from '../contract/driver.js'
import { ProcessorDeadline } from './processor-deadline.js'

/** They may wait for as long as their sandbox lives, close to their limit: looking more often would let them keep the engine busy. */
const pauseMs = 50

export interface EndedRun {
  readonly limitMs: number
  /** How many processors can be used at once. */
  readonly processors: number
  readonly run: Pick<CellRun, 'usage' | 'isPopulated'>
  /** Ends all that the run left behind. */
  readonly kill: () => void
}

/** What ended runs left behind: held to the processor time of the run it belongs to, for as long as the sandbox lives. */
export class Leftovers {
  readonly #watches = new Set<ProcessorDeadline>()
  #isOver = false

  watch({ limitMs, processors, run, kill }: EndedRun): void {
    const alreadyMs = usedBy(run)
    if (this.#isOver || alreadyMs === undefined) return
    const watch = new ProcessorDeadline({
      limitMs,
      processors,
      alreadyMs,
      pauseMs,
      usedMs: () => usedBy(run),
      onReached: kill,
      onOver: () => this.#watches.delete(watch),
    })
    this.#watches.add(watch)
  }

  /** The sandbox is over, and everything in it. */
  end(): void {
    this.#isOver = true
    for (const watch of this.#watches) watch.cancel()
    this.#watches.clear()
  }
}

/** Undefined when nothing of the run is left, or nothing can be told of it. */
function usedBy(run: EndedRun['run']): number | undefined {
  try {
    return run.isPopulated() ? run.usage().cpuMs : undefined
  } catch {
    return undefined
  }
}
