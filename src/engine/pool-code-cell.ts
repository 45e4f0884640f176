import type { Language } from '../contract/code.js'
import type { PlannedSandbox } from '../policy/apply.js'
import type { LiveSandbox } from './live-sandbox.js'
import { type Order, prepareCell } from './making.js'
import { makeHome } from './making-home.js'
import type { PoolItem } from './pool.js'
import type { PoolGround } from './pool-cells.js'
import { type Birth, infoAtBirth } from './sandbox-birth.js'

interface CodeCellParts {
  readonly sandbox: LiveSandbox
  readonly birth: Birth
  /** Its interpreter's. */
  readonly ended: Promise<unknown>
  readonly onGone: { current: () => void }
}

const monthMs = 30 * 86_400_000

/** A cell in which the interpreter of a language was begun before anyone asked for it. Nothing of any guest's has run in it: the interpreter waits for its first code. */
export class CodeCell implements PoolItem {
  readonly ended: Promise<unknown>
  readonly #sandbox: LiveSandbox
  readonly #birth: Birth
  readonly #onGone: { current: () => void }
  #isAlive = true
  /** It was there before it was asked for. */
  hasWaited = false

  private constructor({ sandbox, birth, ended, onGone }: CodeCellParts) {
    this.#sandbox = sandbox
    this.#birth = birth
    this.#onGone = onGone
    // Another interpreter would not be the context's first; so a cell whose own has ended is of no use to anyone.
    const over = ended.catch(() => undefined)
    this.ended = Promise.race([birth.home.open.warden.ended, over]).then(() => {
      this.#isAlive = false
    })
  }

  /** When it does not come about, its interpreter too, nothing of it is left. */
  static async make(order: Order, language: Language, ground: PoolGround): Promise<CodeCell> {
    const { id, signal } = order
    const { tools, bounds } = ground
    const planned = waitingPlan(order.planned)
    const preparation = await prepareCell({ ...order, planned }, tools)
    signal.throwIfAborted()
    const home = await makeHome(preparation, tools, { signal, answerMs: bounds.answerMs })
    const onGone = { current: (): void => undefined }
    const birth = { id, planned, preparation, home, pooled: true, onGone: () => onGone.current() }
    const sandbox = ground.bear(birth)
    try {
      const { ended } = await ground.beginCode(sandbox, language)
      signal.throwIfAborted()
      return new CodeCell({ sandbox, birth, ended, onGone })
    } catch (error) {
      await sandbox.close()
      throw error
    }
  }

  get isAlive(): boolean {
    return this.#isAlive && this.#sandbox.over === undefined
  }

  /** Of a built template, by its content. */
  get templateId(): string | undefined {
    return this.#birth.home.root.id
  }

  /** All is done. */
  rest(): Promise<void> {
    this.hasWaited = true
    return Promise.resolve()
  }

  /** It is the caller's from then on, and told as if it came about now. */
  handOver(planned: PlannedSandbox, onGone: () => void): LiveSandbox {
    this.#onGone.current = onGone
    this.#sandbox.beginAnew(infoAtBirth({ ...this.#birth, planned, pool: this.hasWaited ? 'hit' : 'miss' }), planned.origins)
    return this.#sandbox
  }

  async close(): Promise<void> {
    await this.#sandbox.close()
  }
}

/** While it waits it is nobody's, and its time is its pool's affair. Its variables and its folder are those that its interpreter is started with. */
function waitingPlan(planned: PlannedSandbox): PlannedSandbox {
  const { name: _name, agent: _agent, ...spec } = planned.spec
  return { ...planned, spec: { ...spec, metadata: {}, lifetimeMs: monthMs, idleMs: undefined, onExpiry: 'close' } }
}
