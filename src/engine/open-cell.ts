import { connectWarden, type Warden } from '../channel/index.js'
import type { Cell, CellSpec, Driver } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { FileRule } from '../policy/file-rules.js'

export interface OpenCell {
  readonly cell: Cell
  readonly warden: Warden
  /** What the warden was handed; undefined where the driver's guests run unfiltered. */
  readonly filter: Uint8Array | undefined
  /** Whether only some programs may be executed. */
  readonly isListed: boolean
}

export interface CellOrder {
  readonly driver: Driver
  readonly spec: CellSpec
  /** For the cell's programs; undefined where the driver's guests run unfiltered. */
  readonly filter: (cell: Cell) => Promise<Uint8Array | undefined>
  /** Undefined: programs may do with files what the cell allows. */
  readonly rules: readonly FileRule[] | undefined
  readonly signal: AbortSignal
}

/** A cell whose warden answers. When that does not come about, or is aborted, nothing of the cell is left. */
export async function openCell({ driver, spec, filter: filterFor, rules, signal }: CellOrder): Promise<OpenCell> {
  const cell = await driver.open(spec, signal).catch((error: unknown) => {
    signal.throwIfAborted()
    throw error instanceof SandboxError ? error : new SandboxError('broken', `driver ${driver.name} opened no cell: ${messageOf(error)}`, { cause: error })
  })
  try {
    const filter = await filterFor(cell)
    signal.throwIfAborted()
    const warden = await connectWarden(cell.channel, { signal, ...(filter && { filter }), ...(rules && { rules }) })
    return { cell, warden, filter, isListed: rules !== undefined }
  } catch (error) {
    await cell.close()
    signal.throwIfAborted()
    throw error instanceof SandboxError && error.code !== 'broken' ? error : brokenCell(spec.id, cell, error)
  }
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
