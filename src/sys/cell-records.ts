import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writingTo } from './folder-error.js'
import { currentOwner, isAlive, ownerName, parseOwner } from './owner.js'
import { statePlace } from './places.js'

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
  /** Ends what a dead owner left of a cell. */
  readonly sweep: (cellId: string) => void
}

/** One file per cell, named by its owner and its id, so that what a killed engine left behind is found and ended by the next. */
export function createCellRecords(options: CellRecordsOptions): CellRecords {
  const folder = options.folder ?? join(statePlace(), 'cells')
  const owner = ownerName(currentOwner())
  const held = new Set<string>()
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  sweepDead(folder, options.sweep)
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

function sweepDead(folder: string, sweep: (cellId: string) => void): void {
  for (const name of readdirSync(folder)) {
    const [ownerPart = '', cellId = ''] = name.split('-')
    const owner = parseOwner(ownerPart)
    if (!owner || isAlive(owner)) continue
    sweep(cellId)
    rmSync(join(folder, name), { force: true })
  }
}
