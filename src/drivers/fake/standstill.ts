import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '../../contract/errors.js'
import { childrenOf, descendantsOf } from '../../sys/posture/process-tree.js'

const patienceMs = 5000

/** The programs of a cell that has nothing but signals: stopped one by one, until all stand still. Anyone else could let them go on. */
export class Standstill {
  readonly #warden: number
  /** Not those that had stopped themselves. */
  readonly #stopped = new Set<number>()

  constructor(warden: number) {
    this.#warden = warden
  }

  async begin(besides: readonly number[] = []): Promise<void> {
    const deadline = performance.now() + patienceMs
    const others = (): number[] => this.#moving().filter((pid) => !besides.includes(pid))
    for (let moving = others(); moving.length > 0; moving = others()) {
      if (performance.now() > deadline) {
        this.end()
        throw new SandboxError('busy', `not every program stood still within ${patienceMs} ms`)
      }
      for (const pid of moving) if (signal(pid, 'SIGSTOP')) this.#stopped.add(pid)
      await sleep(1)
    }
  }

  end(): void {
    for (const pid of this.#stopped) signal(pid, 'SIGCONT')
    this.#stopped.clear()
  }

  /** All that the keepers keep, and that is not stopped or dead. */
  #moving(): number[] {
    const keepers = new Set(childrenOf(this.#warden))
    return descendantsOf(this.#warden).filter((pid) => !keepers.has(pid) && !this.#isStill(pid))
  }

  /** What waits in the kernel, such as for a child of vfork(2) that was stopped itself, stops before it does anything else. */
  #isStill(pid: number): boolean {
    const state = stateOf(pid)
    return 'TtZX'.includes(state) || (state === 'D' && this.#stopped.has(pid))
  }
}

function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.charAt(stat.lastIndexOf(')') + 2)
  } catch {
    return 'X'
  }
}

/** False when it is gone. */
function signal(pid: number, name: 'SIGSTOP' | 'SIGCONT'): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}
