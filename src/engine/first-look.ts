/**
 * The look at a new cell, and its first program. That program is asked for as soon as the warden can be told anything, while the cell is still being built and this process has nothing else
 * to do; it waits at its gate, and is looked at there once the cell was found as demanded. Until then nothing of a guest's runs.
 */
import type { Probe } from '../contract/driver.js'
import type { FirstProgram } from './first-program.js'
import { Inspector } from './inspector.js'
import type { MadeCell } from './making.js'
import type { OpenCell } from './open-cell.js'

export interface FirstLookOrder {
  readonly probe: Probe
  /** Where nobody looks nothing waits. */
  readonly inspects: boolean
  /** At which its way out listens besides. */
  readonly ports: (() => readonly number[]) | undefined
  readonly first: FirstProgram | undefined
}

export class FirstLook {
  readonly #order: FirstLookOrder
  readonly #seen: Promise<void>
  #tell!: { readonly seen: () => void; readonly refused: (error: unknown) => void }
  #early: MadeCell | undefined

  constructor(order: FirstLookOrder) {
    this.#order = order
    this.#seen = new Promise((seen, refused) => (this.#tell = { seen, refused }))
    this.#seen.catch(() => undefined)
  }

  /** To be called when the warden can be told something; undefined where nothing is to be. */
  get beforeHello(): ((open: OpenCell) => void) | undefined {
    const { first, inspects } = this.#order
    return first && inspects ? (open) => void (this.#early = this.#begin(open)) : undefined
  }

  /** Throws SandboxError('not-enforced') naming what is not as demanded. */
  async look(open: OpenCell): Promise<MadeCell> {
    try {
      const made = this.#early ?? this.#made(open)
      await made.inspector?.inspectCell()
      this.#tell.seen()
      // Where it could not be begun before, whoever creates the sandbox does not wait for it.
      return this.#early ?? this.#begin(open, made)
    } catch (error) {
      this.giveUp(error)
      throw error
    }
  }

  /** There will be no such cell. */
  giveUp(error: unknown): void {
    this.#early?.first?.unwanted.abort()
    this.#tell.refused(error)
  }

  #made(open: OpenCell): MadeCell {
    const { probe, inspects, ports } = this.#order
    return { probe, open, inspector: inspects ? new Inspector({ cell: open.cell, filter: open.filter, ports }) : undefined }
  }

  #begin(open: OpenCell, made = this.#made(open)): MadeCell {
    const held = made.inspector && this.#order.first?.(made, this.#seen)
    return { ...made, ...(held && { first: held }) }
  }
}
