import { mkdirSync, readdirSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writingTo } from './folder-error.js'
import { currentOwner, ownerName } from './owner.js'
import { statePlace } from './places.js'
import { endAll } from './processes.js'
import { Sweeper } from './sweeper.js'

const folderName = 'cells'

export interface CellRecord {
  /** Idempotent. Only when no process of the cell is left. */
  readonly release: () => void
}

export interface CellRecords {
  /** The record is on disk before this returns. */
  claim(cellId: string): CellRecord
}

export interface CellRecordsOptions {
  readonly folder?: string
  /** Host pids of a cell, by which what a dead owner left of it is ended. */
  readonly remains: (cellId: string) => readonly number[]
}

/** One file per cell, named by its owner and its id, so that what a killed engine left behind is found and ended by the next. */
export function createCellRecords(options: CellRecordsOptions): CellRecords {
  const folder = options.folder ?? join(statePlace(), folderName)
  const owner = ownerName(currentOwner())
  const held = new Set<string>()
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  sweepCellRecords(folder, options)
  const drop = (path: string): void => {
    if (!held.delete(path)) return
    if (held.size === 0) process.off('exit', dropAll)
    rmSync(path, { force: true })
  }
  const dropAll = (): void => {
    for (const path of [...held]) drop(path)
  }
  return {
    claim(cellId) {
      const path = join(folder, `${owner}-${cellId}`)
      writingTo(folder, () => writeFileSync(path, '', { flag: 'wx', mode: 0o600 }))
      if (held.size === 0) process.on('exit', dropAll)
      held.add(path)
      return { release: () => drop(path) }
    },
  }
}

/** Of a state folder. */
export function cellRecordsIn(state: string): string {
  return join(state, folderName)
}

/** Makes nothing. */
export function sweepCellRecords(
  folder: string,
  { remains, sweeper = new Sweeper() }: Pick<CellRecordsOptions, 'remains'> & { readonly sweeper?: Sweeper },
): void {
  for (const name of namesIn(folder)) {
    const [owner = '', cellId = ''] = name.split('-')
    sweeper.attempt({ kind: 'cell', what: cellId || name, owner }, () => {
      // A name that was cut short says nothing of any process.
      if (cellId !== '')
        sweeper.ended(
          endAll(() => remains(cellId)),
          owner,
        )
      unlinkSync(join(folder, name))
    })
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
