import { connectWarden, type Warden } from '../channel/index.js'
import type { Cell, CellSpec, Driver } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'

export interface OpenCell {
  readonly cell: Cell
  readonly warden: Warden
}

export interface CellOrder {
  readonly driver: Driver
  readonly spec: CellSpec
  /** Undefined where the driver's guests run unfiltered. */
  readonly filter: Uint8Array | undefined
  readonly signal: AbortSignal
}

/** A cell whose warden answers. When that does not come about, or is aborted, nothing of the cell is left. */
export async function openCell({ driver, spec, filter, signal }: CellOrder): Promise<OpenCell> {
  const cell = await driver.open(spec, signal).catch((error: unknown) => {
    signal.throwIfAborted()
    throw error instanceof SandboxError ? error : new SandboxError('broken', `driver ${driver.name} opened no cell: ${messageOf(error)}`, { cause: error })
  })
  try {
    signal.throwIfAborted()
    return { cell, warden: await connectWarden(cell.channel, { signal, ...(filter && { filter }) }) }
  } catch (error) {
    await cell.close()
    signal.throwIfAborted()
    throw brokenCell(spec.id, cell, error)
  }
}

/** What a cell that ended on its own is reported as, with the runtime's own words. Best asked when the cell is closed: then they are complete. */
export function brokenCell(id: string, cell: Cell, cause: unknown): SandboxError {
  const said = cell.diagnosis().trim()
  return new SandboxError('broken', `the cell of sandbox ${id} ended: ${messageOf(cause)}${said === '' ? '' : ` (${said})`}`, {
    cause,
    hint: 'glovebox doctor',
  })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
