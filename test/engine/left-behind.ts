/** What of this machine shows that an engine was there. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isAlive, parseOwner } from '../../src/sys/owner.js'
import { statePlace } from '../../src/sys/places.js'
import { findProcesses, isZombie, uidOf } from '../../src/sys/processes.js'
import { tracesOf } from '../server/started-server.js'

const firstId = 0x78000000
const rangeSize = 65_536

/** Of one that is dead: whatever bears its name, all temporary files, halves of anything, processes under ids that nobody has, loop devices. Objects that are whole are no leftovers. */
export function leftBehindBy(pid: number, home: string): string[] {
  return [
    ...tracesOf(pid, { folder: home, socket: '' }),
    ...['tmp', 'snapshots/drafts', 'cells'].flatMap((name) => namesIn(join(home, name))),
    ...treeBelow(home).filter((path) => new RegExp(`(?<!\\d)${pid}\\.\\d+\\.|/new-|\\.draft$`).test(path)),
    ...processesOfNobody(),
    ...namesIn('/run/netns').filter((name) => name.includes('glovebox')),
    ...namesIn('/sys/block').filter((name) => backingOf(name).includes(home)),
  ]
}

/** Those under ids of cells that no living engine has on record. Only root's cells have any, and an ordinary user knows nothing of root's records. */
function processesOfNobody(): string[] {
  if (process.getuid?.() !== 0) return []
  const ranges = join(statePlace(), 'ranges')
  const isHeld = (slot: number): boolean => namesIn(join(ranges, String(slot))).some((name) => isLiving(name))
  const ofCells = findProcesses((each) => uidOf(each) >= firstId && uidOf(each) < 0x80000000 && !isZombie(each))
  return ofCells.flatMap((each) => {
    try {
      return isHeld(Math.floor((uidOf(each) - firstId) / rangeSize)) ? [] : [`process ${each} of nobody`]
    } catch {
      return []
    }
  })
}

function isLiving(name: string): boolean {
  const owner = parseOwner(name)
  return owner === undefined || isAlive(owner)
}

function backingOf(device: string): string {
  const file = join('/sys/block', device, 'loop/backing_file')
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

function treeBelow(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)) : []
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
