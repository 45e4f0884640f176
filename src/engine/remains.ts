import type { WardenProcess } from '../channel/index.js'
import type { CellRun } from '../contract/driver.js'

/** What an ended program may have left behind, and no more of it than is needed to end that: what it was told, printed and used is nobody's any more. */
export class Remains {
  readonly #program: Pick<WardenProcess, 'kill'>
  readonly #run: Pick<CellRun, 'group' | 'isPopulated'>

  constructor(program: Pick<WardenProcess, 'kill'>, run: Pick<CellRun, 'group' | 'isPopulated'>) {
    this.#program = program
    this.#run = run
  }

  /** False only where someone counts, and found nothing. */
  get mayBeThere(): boolean {
    try {
      return this.#run.group === undefined || this.#run.isPopulated()
    } catch {
      return true
    }
  }

  /** Resolves when none of it is left. */
  end(): Promise<void> {
    return this.#program.kill()
  }
}
