/** Which sandboxes use a template: a file for each, named by its owner and the cell, so that those of a killed engine do not count. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writingTo } from '../sys/folder-error.js'
import { currentOwner, isAlive, ownerName, parseOwner } from '../sys/owner.js'

/** On disk before this returns. */
export function holdObject(folder: string, cellId: string): Disposable {
  const path = join(folder, `${ownerName(currentOwner())}-${cellId}`)
  writingTo(folder, () => {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(path, '', { mode: 0o600 })
  })
  return { [Symbol.dispose]: () => rmSync(path, { force: true }) }
}

/** Those of dead owners are forgotten on the way. */
export function cellsUsing(folder: string): string[] {
  const cells: string[] = []
  for (const name of namesIn(folder)) {
    const [ownerPart = '', cellId = ''] = name.split('-')
    const owner = parseOwner(ownerPart)
    if (owner === undefined) continue
    if (isAlive(owner)) cells.push(cellId)
    else rmSync(join(folder, name), { force: true })
  }
  return cells.sort()
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
