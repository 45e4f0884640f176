/**
 * Who looks through what engines left. Whatever an engine makes on this machine bears its name (`owner.ts`) from before it is made; what bears the name of one that is dead is
 * ended and removed, what bears that of a living one is not touched, nor what bears a name that nobody here understands: a newer version may have written it. One thing that
 * cannot be removed keeps nothing else from it, and no engine from starting.
 */
import { currentBoot, currentPidNamespace, isAlive, parseOwner } from './owner.js'

export type LeftoverKind =
  | 'process'
  | 'cgroup'
  | 'ids'
  | 'cell'
  | 'bundle'
  | 'container'
  | 'disk'
  | 'folder'
  | 'snapshot'
  | 'template'
  | 'package'
  | 'changes'
  | 'draft'
  | 'lock'
  | 'daemon'
  | 'socket'
  | 'note'

export interface Leftover {
  readonly kind: LeftoverKind
  /** A path, or whatever else tells it from others. */
  readonly what: string
  /** The name of whoever made it, as it bears it. */
  readonly owner: string
  /** It bears none, and was found in another way to be nobody's. */
  readonly isOrphan?: true
}

export interface Finding extends Leftover {
  /** `due`: it would have been removed. */
  readonly fate: 'removed' | 'due' | 'kept' | 'failed'
  /** Of what is still there. */
  readonly why?: string
}

export interface SweeperOptions {
  /** Nothing is ended or removed. */
  readonly isDry?: boolean
  readonly tell?: (finding: Finding) => void
}

export class Sweeper {
  readonly #options: SweeperOptions
  /** Whoever has a thousand cells is looked at once. */
  readonly #known = new Map<string, string | undefined>()

  constructor(options: SweeperOptions = {}) {
    this.#options = options
  }

  /** Removes it when its owner is dead. Never throws: what is in the way is told. `remove` may say that there was nothing any more. */
  attempt(leftover: Leftover, remove: () => unknown): void {
    if (!this.#isDue(leftover)) return
    try {
      if (remove() !== gone) this.#tell({ ...leftover, fate: 'removed' })
    } catch (error) {
      this.#fail(leftover, error)
    }
  }

  /** The same for what takes a while. */
  async attemptSlowly(leftover: Leftover, remove: () => Promise<unknown>): Promise<void> {
    if (!this.#isDue(leftover)) return
    try {
      if ((await remove()) !== gone) this.#tell({ ...leftover, fate: 'removed' })
    } catch (error) {
      this.#fail(leftover, error)
    }
  }

  /** Processes that were ended with what they had, in words. */
  ended(processes: readonly string[], owner: string): void {
    for (const what of processes) this.#tell({ kind: 'process', what, owner, fate: 'removed' })
  }

  /** What is not touched for another reason. */
  keep(leftover: Leftover, why: string): void {
    this.#tell({ ...leftover, fate: 'kept', why })
  }

  /** Whether whoever bears this name is known to be dead. */
  isDead(owner: string): boolean {
    return this.#lifeSign(owner) === undefined
  }

  #isDue(leftover: Leftover): boolean {
    const why = leftover.isOrphan ? undefined : this.#lifeSign(leftover.owner)
    if (why !== undefined) this.#tell({ ...leftover, fate: 'kept', why })
    else if (this.#options.isDry) this.#tell({ ...leftover, fate: 'due' })
    return why === undefined && !this.#options.isDry
  }

  /** Why it must not be taken for dead. */
  #lifeSign(name: string): string | undefined {
    if (!this.#known.has(name)) this.#known.set(name, lifeSignOf(name))
    return this.#known.get(name)
  }

  #fail(leftover: Leftover, error: unknown): void {
    const { code, message } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT') this.#tell({ ...leftover, fate: 'failed', why: message })
  }

  #tell(finding: Finding): void {
    this.#options.tell?.(finding)
  }
}

/** What `remove` returns when another was faster. */
export const gone = Symbol('gone')

function lifeSignOf(name: string): string | undefined {
  const owner = parseOwner(name)
  if (owner === undefined) return 'its name is not understood: another version may have made it'
  if (!isAlive(owner)) return undefined
  const isHidden = owner.boot === currentBoot() && owner.pidNamespace !== currentPidNamespace()
  return isHidden ? 'its owner is in another pid namespace, and cannot be seen from here' : 'its owner lives'
}
