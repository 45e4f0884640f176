import { SandboxError } from '../contract/errors.js'
import { linkSignals } from '../contract/linked-signals.js'
import type { PlannedSandbox } from '../policy/apply.js'
import type { FilesHost } from './file-operation.js'
import type { Lifetime, Stillness } from './lifetime.js'
import { LiveCell, type LiveCellOrder, type MadeHome } from './live-cell.js'
import { LoneWorker } from './lone-worker.js'
import type { LayeredSandbox, ReadableSandbox, Reading } from './snapshots-access.js'
import type { FilesAside, KeepAside } from './snapshots-facet.js'
import { layerAccess, layerReader } from './snapshots-worker.js'

export interface CellHoldOrder extends LiveCellOrder {
  readonly life: LiveCellOrder['life'] & Pick<Lifetime, 'still'>
  readonly first: MadeHome
  /** What another of the same kind is made from, as it is now. */
  planned(): PlannedSandbox
  /** Another cell, made and looked at as the first was. */
  remake(signal: AbortSignal): Promise<MadeHome>
  readonly keepAside: KeepAside
}

function hasOverlays({ made }: LiveCell): boolean {
  return made.open.cell.layers.some(({ kind }) => kind === 'overlay')
}

/** False where nothing can be stopped, or nothing be left out. */
async function stopAllBut({ made: { open, probe } }: LiveCell, { bystander }: LoneWorker): Promise<boolean> {
  if (!probe.features.pause.available) return false
  try {
    await open.cell.pause([bystander])
    return true
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'unsupported') return false
    throw error
  }
}

/** The cell of a sandbox: there, or away while its files are kept aside. */
export class CellHold implements ReadableSandbox {
  readonly #order: CellHoldOrder
  readonly #calledOff = new AbortController()
  #cell: LiveCell | undefined
  #aside: FilesAside | undefined

  constructor(order: CellHoldOrder) {
    this.#order = order
    this.#cell = new LiveCell(order.first, order)
    this.#cell.arrive()
  }

  /** Undefined while it is away. */
  get current(): LiveCell | undefined {
    return this.#cell
  }

  /** Throws SandboxError('conflict') while it is away. */
  get here(): LiveCell {
    if (this.#cell) return this.#cell
    throw new SandboxError('conflict', `sandbox ${this.#order.info().id} is paused without its memory; resume it first`, { hint: 'await sandbox.resume()' })
  }

  get layered(): LayeredSandbox {
    return this.#layeredOf(this.here, this.here.files)
  }

  /** In its turn: what was asked of its life before, a pause and a resume too, is done by then. */
  async whileStill<T>(signal: AbortSignal | undefined, act: (reading: Reading) => Promise<T>): Promise<T> {
    using until = linkSignals(this.#calledOff.signal, signal)
    try {
      return await this.#order.life.still(() => this.#readingOf(until.signal, act))
    } catch (error) {
      // It says why it is over.
      if (this.#calledOff.signal.aborted) await this.#order.checkOpen()
      throw error
    }
  }

  /** Its programs end, its files are kept aside, and then nothing of it is left. */
  async putAway(): Promise<void> {
    const cell = this.here
    const { signal } = this.#calledOff
    const host = cell.privately(signal)
    cell.leave()
    try {
      const settle = (): Promise<void> => cell.endPrograms('its sandbox was paused without its memory')
      this.#aside = await this.#order.keepAside(this.#layeredOf(cell, host), { settle, signal })
      host.workers.close()
      const used = await cell.made.open.cell.usage()
      await cell.close()
      this.#order.ledger.leave(used)
      this.#cell = undefined
    } catch (error) {
      host.workers.close()
      await this.#forgetAside()
      // Should it have ended meanwhile, that is the sandbox's end now.
      cell.arrive()
      throw error
    }
  }

  /** Another one with the same files. When that does not come about nothing of it is left, and the files stay aside. */
  async bringBack(): Promise<void> {
    const { signal } = this.#calledOff
    const cell = new LiveCell(await this.#order.remake(signal), this.#order)
    const host = cell.privately(signal)
    try {
      await this.#aside?.restore(this.#layeredOf(cell, host), signal)
      signal.throwIfAborted()
    } catch (error) {
      await cell.close()
      throw error
    } finally {
      host.workers.close()
    }
    this.#cell = cell
    cell.arrive()
    await this.#forgetAside()
  }

  /** Nothing is put away or brought back any more; what is under way fails. */
  callOff(why: SandboxError): void {
    this.#calledOff.abort(why)
  }

  /** Settles with what it is given, but at the latest when it is called off. */
  async unlessOver(pending: Promise<unknown>): Promise<void> {
    const { signal } = this.#calledOff
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => resolve()
      signal.addEventListener('abort', onAbort, { once: true })
      pending.then(onAbort, reject).finally(() => signal.removeEventListener('abort', onAbort))
      if (signal.aborted) resolve()
    })
  }

  /** Resolves when nothing is left, once `acts` have. Again when it did not. */
  async close(acts: () => Promise<unknown>): Promise<void> {
    await this.#cell?.close()
    await acts()
    await this.#cell?.close()
    await this.#aside?.discard()
  }

  async #forgetAside(): Promise<void> {
    const aside = this.#aside
    this.#aside = undefined
    // What cannot be removed is swept by whoever keeps something next.
    await aside?.discard().catch(() => undefined)
  }

  #layeredOf(cell: LiveCell, host: FilesHost): LayeredSandbox {
    return {
      info: this.#order.info(),
      planned: this.#order.planned(),
      cell: cell.made.open.cell,
      access: (signal) => layerAccess(host, { signal, overlays: hasOverlays(cell) }),
    }
  }

  #readingOf<T>(until: AbortSignal, act: (reading: Reading) => Promise<T>): Stillness<T> {
    const cell = this.here
    const overlays = hasOverlays(cell)
    const host = cell.privately(until)
    let worker: LoneWorker | undefined
    const end = async (): Promise<void> => {
      await worker?.end()
      host.workers.close()
    }
    return {
      stop: async () => {
        try {
          // There before anything stands still: whatever is started then would too.
          worker = await LoneWorker.from(host.workers, { kind: layerReader(host, { overlays }), signal: until })
          return await stopAllBut(cell, worker)
        } catch (error) {
          await end()
          throw error
        }
      },
      goOn: () => cell.made.open.cell.resume(),
      // Gone before the next act on its life: a pause would catch it while it ends.
      act: () => {
        const access = layerAccess(worker ? { ...host, workers: worker } : host, { signal: until, overlays })
        return act({ sandbox: this.#layeredOf(cell, host), access }).finally(end)
      },
    }
  }
}
