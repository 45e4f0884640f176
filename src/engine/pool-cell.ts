import type { Spec } from '../contract/spec.js'
import type { PlannedSandbox } from '../policy/apply.js'
import { planRun } from '../policy/run.js'
import type { MadeHome } from './live-cell.js'
import { type Order, prepareCell, type Preparation, type Tools } from './making.js'
import { makeHome } from './making-home.js'
import type { PoolItem } from './pool.js'
import { limitsOf } from './program-starter.js'
import { beginReady, type Held, mayWait, type ProgramKind, programKind } from './ready-programs.js'
import { startRequest } from './start-request.js'

interface WarmParts {
  readonly id: string
  readonly planned: PlannedSandbox
  readonly preparation: Preparation
  readonly home: MadeHome
}

/** A cell that was made and looked at before anyone asked for it. Nothing of any guest's has run in it. */
export class WarmCell implements PoolItem {
  readonly id: string
  readonly preparation: Preparation
  readonly ended: Promise<unknown>
  readonly #planned: PlannedSandbox
  readonly #home: MadeHome
  #first: Held | undefined
  #isAlive = true
  #condemn: () => void = () => undefined

  private constructor({ id, planned, preparation, home }: WarmParts) {
    this.id = id
    this.#planned = planned
    this.preparation = preparation
    this.#home = home
    const condemned = new Promise<void>((resolve) => {
      this.#condemn = resolve
    })
    this.ended = Promise.race([home.open.warden.ended, condemned]).then(() => {
      this.#isAlive = false
    })
  }

  /** When it does not come about nothing of it is left. */
  static async make(order: Order, tools: Tools, answerMs: number): Promise<WarmCell> {
    const { id, planned, signal } = order
    const preparation = await prepareCell(order, tools)
    signal.throwIfAborted()
    const home = await makeHome(preparation, tools, { signal, answerMs })
    return new WarmCell({ id, planned, preparation, home })
  }

  get isAlive(): boolean {
    return this.#isAlive
  }

  /** Of a built template, by its content. */
  get templateId(): string | undefined {
    return this.#home.root.id
  }

  /** Its first program is made ready, and read in full, while nobody waits. */
  async rest(): Promise<void> {
    const kind = this.#usualKind()
    if (!kind) return
    const { open, inspector } = this.#home
    this.#first = beginReady(kind, {
      open,
      inspector,
      checkOpen: () => Promise.resolve(),
      // What is not as demanded is never handed out.
      condemn: (error) => {
        this.#condemn()
        return Promise.resolve(error)
      },
    })
    await this.#first.made
  }

  /** It is the caller's from then on. */
  handOver(): MadeHome {
    const first = this.#first
    this.#first = undefined
    return { ...this.#home, ...(first && { first }) }
  }

  async close(): Promise<void> {
    const { warden, cell } = this.#home.open
    this.#first?.unwanted.abort()
    void this.#first?.made.then((ready) => ready?.run.close().catch(() => undefined))
    warden.close()
    await this.#home.network?.close()
    await cell.close()
  }

  /** What most programs are: of the sandbox's user, not fed, with its limits. */
  #usualKind(): ProgramKind | undefined {
    const { open, root, probe, inspector } = this.#home
    const spec: Spec = this.preparation.spec
    const user = open.cell.users.find(({ name }) => name === spec.user)
    // A profile of the user's own may refuse what a program does between its release and its execve.
    if (!inspector || !user || spec.seccomp !== undefined || !mayWait(spec.limits)) return undefined
    const asked = spec.limits.stated.filter((name) => this.#planned.origins[`limits.${name}`] === 'spec')
    const plan = planRun({ command: ['true'] }, spec, asked)
    return programKind(startRequest({ plan, user, cell: open.cell, root, probe }), user, limitsOf(plan))
  }
}
