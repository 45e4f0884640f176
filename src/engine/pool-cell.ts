import { SandboxError } from '../contract/errors.js'
import type { PlannedSandbox } from '../policy/apply.js'
import { beginPython, type BegunSource } from './begun-python.js'
import { Deadline } from './deadline.js'
import type { MadeHome } from './live-cell.js'
import { type Order, prepareCell, type Preparation, type Tools } from './making.js'
import { makeHome } from './making-home.js'
import type { PoolItem } from './pool.js'
import { beginReady, discard, type Held, holdBegun, type ReadyPlace } from './ready-programs.js'
import { usualProgram, type UsualProgram } from './usual-program.js'

/** What it is to hold besides its cell. */
export interface WarmWish {
  readonly source: BegunSource
  readonly answerMs: number
  /** The interpreter that is to wait in it, as things are now; undefined: none. */
  begins(): { readonly program: string } | undefined
  /** It did not become ready. */
  onUnbegun(program: string): void
  /** What it is to have imported, or there is no cell. */
  readonly imports: readonly string[] | undefined
}

interface WarmParts {
  readonly id: string
  readonly planned: PlannedSandbox
  readonly preparation: Preparation
  readonly home: MadeHome
  readonly wish: WarmWish
}

interface Handed {
  readonly home: MadeHome
  /** Resolves when nothing is in it that is not to be. */
  readonly alone: Promise<void>
}

/** A cell that was made and looked at before anyone asked for it. Nothing of any guest's has run in it. */
export class WarmCell implements PoolItem {
  readonly id: string
  readonly preparation: Preparation
  readonly ended: Promise<unknown>
  readonly #planned: PlannedSandbox
  readonly #home: MadeHome
  readonly #wish: WarmWish
  #first: Held | undefined
  #isHandedOver = false
  /** It was there before it was asked for. */
  hasWaited = false
  #isAlive = true
  #condemn: () => void = () => undefined

  private constructor({ id, planned, preparation, home, wish }: WarmParts) {
    this.id = id
    this.#wish = wish
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
  static async make(order: Order, tools: Tools, wish: WarmWish): Promise<WarmCell> {
    const { id, planned, signal } = order
    const preparation = await prepareCell(order, tools)
    signal.throwIfAborted()
    const home = await makeHome(preparation, tools, { signal, answerMs: wish.answerMs })
    const warm = new WarmCell({ id, planned, preparation, home, wish })
    if (wish.imports === undefined) return warm
    try {
      await warm.#begin()
      signal.throwIfAborted()
      return warm
    } catch (error) {
      await warm.close()
      throw error
    }
  }

  get isAlive(): boolean {
    return this.#isAlive
  }

  /** Of a built template, by its content. */
  get templateId(): string | undefined {
    return this.#home.root.id
  }

  /** Its first program is made ready, and read in full, while nobody waits; or an interpreter is begun that is to become it. */
  async rest(): Promise<void> {
    this.hasWaited = true
    if (this.#first) return
    const program = this.#wish.begins()?.program
    if (program !== undefined && (await this.#tryToBegin(program))) return
    const usual = this.#usual()
    if (!usual || this.#isHandedOver || !this.#isAlive) return
    this.#first = beginReady(usual.kind, this.#place())
    await this.#first.made
  }

  /** It is the caller's from then on. For one run alone: an interpreter that was begun is for the first program that nothing came before. */
  handOver({ isForOneRun }: { readonly isForOneRun: boolean }): Handed {
    const first = this.#first
    this.#first = undefined
    this.#isHandedOver = true
    const isLeft = first?.isBegun === true && !isForOneRun
    return { home: { ...this.#home, ...(first && !isLeft && { first }) }, alone: isLeft ? discard(first) : Promise.resolve() }
  }

  async close(): Promise<void> {
    const { warden, cell } = this.#home.open
    this.#isAlive = false
    this.#first?.unwanted.abort()
    void this.#first?.made.then((ready) => ready?.run.close().catch(() => undefined))
    warden.close()
    await this.#home.network?.close()
    await cell.close()
  }

  async #tryToBegin(program: string): Promise<boolean> {
    try {
      await this.#begin(program)
      return true
    } catch (error) {
      // What ended the cell, or is not as demanded, leaves nothing to be made ready; whoever has it by now has called this off.
      const isItsFault = error instanceof SandboxError && (error.code === 'unsupported' || error.code === 'invalid')
      if (!isItsFault || this.#isHandedOver || !this.#isAlive) return true
      this.#first = undefined
      this.#wish.onUnbegun(program)
      return false
    }
  }

  /** Throws as `beginPython` does. */
  async #begin(program = 'python3'): Promise<void> {
    const usual = this.#usual()
    if (!usual)
      throw new SandboxError('unsupported', 'imports: no interpreter can wait where programs are not looked at, or fewer than 32 processes are allowed')
    const { request, user, limits, kind } = usual
    const order = { request, user, limits, program, imports: this.#wish.imports ?? [] }
    const { source, answerMs } = this.#wish
    const place = { ...this.#place(), source, templateKey: this.templateId ?? this.preparation.spec.template }
    const first = holdBegun(kind, (giveUp) => beginPython(order, place, giveUp))
    this.#first = first
    const late = new Deadline(answerMs, () => first.unwanted.abort())
    try {
      await first.begun
    } catch (error) {
      if (error instanceof SandboxError && error.code === 'not-enforced') this.#condemn()
      throw error
    } finally {
      late.cancel()
    }
  }

  #place(): ReadyPlace {
    const { open, inspector } = this.#home
    return {
      open,
      inspector,
      checkOpen: () => Promise.resolve(),
      // What is not as demanded is never handed out.
      condemn: (error) => {
        this.#condemn()
        return Promise.resolve(error)
      },
    }
  }

  #usual(): UsualProgram | undefined {
    const { root } = this.#home
    return usualProgram({ made: this.#home, root, spec: this.preparation.spec, origins: this.#planned.origins })
  }
}
