import { type AwaitedWarden, awaitWarden, type Warden } from '../channel/index.js'
import type { Cell, CellSpec, Driver } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { Faults } from '../contract/faults.js'
import type { FileRule } from '../policy/file-rules.js'

export interface OpenCell {
  readonly cell: Cell
  readonly warden: Warden
  /** What the warden was handed; undefined where the driver's guests run unfiltered. */
  readonly filter: Uint8Array | undefined
  /** Whether only some programs may be executed. */
  readonly isListed: boolean
  readonly faults?: Faults | undefined
}

export interface CellOrder {
  readonly driver: Driver
  readonly spec: CellSpec
  /** For the cell's programs; undefined where the driver's guests run unfiltered. */
  readonly filter: (cell: Cell) => Promise<Uint8Array | undefined>
  /** Undefined: programs may do with files what the cell allows. */
  readonly rules: readonly FileRule[] | undefined
  readonly signal: AbortSignal
  /** Called when the warden can be told something but has not answered yet; again when the driver begins anew, and then all that came of the one before fails. */
  readonly beforeHello?: ((open: OpenCell) => void) | undefined
}

/** A cell whose warden answers. When that does not come about, or is aborted, nothing of the cell is left. */
export async function openCell(order: CellOrder): Promise<OpenCell> {
  const { driver, spec, signal, beforeHello } = order
  let launched: Cell | undefined
  let awaited: Promise<Awaited> | undefined
  const giveUp = (): void => void awaited?.then(({ warden }) => warden.fail(new SandboxError('broken', 'the cell did not open'))).catch(() => undefined)
  const onLaunched = (early: Cell): void => {
    giveUp()
    launched = early
    awaited = awaitedIn(early, order)
    awaited.then(({ open }) => beforeHello?.(open)).catch(() => undefined)
  }
  const cell = await driver.open(beforeHello ? { ...spec, onLaunched } : spec, signal).catch((error: unknown) => {
    giveUp()
    signal.throwIfAborted()
    throw error instanceof SandboxError ? error : new SandboxError('broken', `driver ${driver.name} opened no cell: ${messageOf(error)}`, { cause: error })
  })
  try {
    // What was asked of another has to be true of this one.
    if (launched && launched !== cell) throw new SandboxError('internal', `driver ${driver.name} hands out another cell than it launched`)
    const { open, warden } = await (awaited ?? awaitedIn(cell, order))
    signal.throwIfAborted()
    await warden.greet(signal)
    spec.faults?.('create/connected')
    return open
  } catch (error) {
    giveUp()
    await cell.close()
    signal.throwIfAborted()
    throw error instanceof SandboxError && error.code !== 'broken' ? error : brokenCell(spec.id, cell, error)
  }
}

interface Awaited {
  readonly open: OpenCell
  readonly warden: AwaitedWarden
}

async function awaitedIn(cell: Cell, { filter: filterFor, rules, spec }: CellOrder): Promise<Awaited> {
  const filter = await filterFor(cell)
  const warden = awaitWarden(cell.channel, { ...(filter && { filter }), ...(rules && { rules }) })
  return { open: { cell, warden: warden.warden, filter, isListed: rules !== undefined, faults: spec.faults }, warden }
}

/** What a cell that ended on its own is reported as, with the runtime's own words. Best asked when the cell is closed: then they are complete. */
export function brokenCell(id: string, cell: Cell | undefined, cause: unknown): SandboxError {
  const said = cell?.diagnosis().trim() ?? ''
  return new SandboxError('broken', `the cell of sandbox ${id} ended: ${messageOf(cause)}${said === '' ? '' : ` (${said})`}`, {
    cause,
    hint: 'glovebox doctor',
  })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
