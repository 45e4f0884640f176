import { mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import { writingTo } from './folder-error.js'
import type { Owner } from './owner.js'
import { currentOwner, ownerName } from './owner.js'
import { endAll, findProcesses, isZombie, uidOf } from './processes.js'
import { statePlace } from './places.js'
import { gone, Sweeper } from './sweeper.js'

/*
 * Host uid ranges, one per cell, shared by every engine of this machine without a daemon or a lock that could be left behind.
 *
 * A taken range is a folder named by its slot that holds one file, named by its owner, with the cell's id in it. The folder
 * is prepared aside and renamed into place: a rename onto a folder that is not empty fails, so of two engines one gets the slot.
 * A record is withdrawn by deleting the owner's file by its exact name, then the empty folder. So a sweep that saw a dead owner can never
 * take away the record of a living one who came after: the file it wants to delete is no longer there.
 */

const folderName = 'ranges'
const rangeSize = 65_536
const firstId = 0x78000000
/** Below 2^31, where no program mistakes an id for a negative number. */
const slots = (0x80000000 - firstId) / rangeSize

export interface UidRange {
  readonly base: number
  readonly size: number
  /** Idempotent. Only when no process of the range is left. */
  readonly release: () => void
}

export interface UidRanges {
  /** The record is on disk before this returns. */
  claim(cellId: string): UidRange
}

export interface UidRangesOptions {
  readonly folder?: string
  readonly owner?: Owner
  /** Ranges that others use: [first, size]. Read from subuid, subgid and passwd when not given. */
  readonly foreign?: readonly (readonly [number, number])[]
}

export function createUidRanges(options: UidRangesOptions = {}): UidRanges {
  const folder = options.folder ?? join(statePlace(), folderName)
  const owner = options.owner ?? currentOwner()
  const held = new Map<number, string>()
  /** Below it every slot was taken when it was last tried: whoever has a thousand cells is not to try a thousand slots for the next. */
  let lowest = 0
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  sweepRanges(folder, { ownName: ownerName(owner) })
  const foreign = foreignSlots(options.foreign ?? readForeignRanges())
  const releaseAll = (): void => {
    for (const slot of [...held.keys()]) drop(slot)
  }
  const drop = (slot: number): void => {
    const name = held.get(slot)
    if (name === undefined) return
    held.delete(slot)
    lowest = Math.min(lowest, slot)
    if (held.size === 0) process.off('exit', releaseAll)
    withdraw(join(folder, String(slot)), name)
  }
  return {
    claim(cellId) {
      const name = ownerName(owner)
      const slot = writingTo(folder, () => takeSlot({ folder, name, cellId, foreign, lowest }))
      lowest = slot + 1
      if (held.size === 0) process.on('exit', releaseAll)
      held.set(slot, name)
      return { base: firstId + slot * rangeSize, size: rangeSize, release: () => drop(slot) }
    },
  }
}

interface Take {
  readonly folder: string
  readonly name: string
  readonly cellId: string
  readonly foreign: ReadonlySet<number>
  readonly lowest: number
}

/** From the lowest that may be free, and then from the first, which others may have given back. */
function takeSlot({ folder, name, cellId, foreign, lowest }: Take): number {
  const prepared = join(folder, `new-${name}-${cellId}`)
  mkdirSync(prepared, { mode: 0o700 })
  try {
    writeFileSync(join(prepared, name), cellId, { flag: 'wx' })
  } catch (error) {
    rmSync(prepared, { recursive: true })
    throw error
  }
  for (let tried = 0; tried < slots; tried++) {
    const slot = (lowest + tried) % slots
    // The kernel itself says whether it is taken: nothing is renamed onto a folder that is not empty.
    if (!foreign.has(slot) && renameUnless(['ENOTEMPTY', 'EEXIST'], prepared, join(folder, String(slot)))) return slot
  }
  rmSync(prepared, { recursive: true })
  throw new SandboxError('busy', `all ${slots} uid ranges of this machine are in use`)
}

function withdraw(slotFolder: string, name: string): void {
  quietly(['ENOENT'], () => unlinkSync(join(slotFolder, name)))
  quietly(['ENOENT', 'ENOTEMPTY', 'EEXIST'], () => rmdirSync(slotFolder))
}

export interface RangeSweep {
  readonly sweeper?: Sweeper
  /** Of whoever sweeps. */
  readonly ownName?: string
}

/** Ends what dead owners left running in their ranges, then withdraws their records. Makes nothing. */
export function sweepRanges(folder: string, { sweeper = new Sweeper(), ownName = ownerName(currentOwner()) }: RangeSweep = {}): void {
  for (const entry of quietly(['ENOENT'], () => readdirSync(folder)) ?? []) {
    const preparing = /^new-([^-]+)-/.exec(entry)?.[1]
    const path = join(folder, entry)
    if (preparing === undefined) sweepSlot(path, ownName, sweeper)
    else sweeper.attempt({ kind: 'ids', what: path, owner: preparing }, () => rmSync(path, { recursive: true }))
  }
}

/** Of a state folder. */
export function rangesIn(state: string): string {
  return join(state, folderName)
}

/** Takes the record over before acting on it, so that nothing is killed in a slot that another engine has swept and handed out meanwhile. */
function sweepSlot(slotFolder: string, ownName: string, sweeper: Sweeper): void {
  const slot = Number(basename(slotFolder))
  const range = { base: firstId + slot * rangeSize, size: rangeSize }
  for (const name of quietly(['ENOENT', 'ENOTDIR'], () => readdirSync(slotFolder)) ?? []) {
    const [own, its] = [join(slotFolder, ownName), join(slotFolder, name)]
    sweeper.attempt({ kind: 'ids', what: Number.isNaN(slot) ? its : `${range.base} to ${range.base + range.size - 1}`, owner: name }, () => {
      if (!renameUnless(['ENOENT'], its, own)) return gone
      try {
        if (!Number.isNaN(slot))
          sweeper.ended(
            endAll(() => processesIn(range)),
            name,
          )
      } catch (error) {
        // As long as one of them runs, nobody else may have these ids.
        renameSync(own, its)
        throw error
      }
      withdraw(slotFolder, ownName)
      return undefined
    })
  }
}

/** False when the kernel refused for one of these reasons. */
function renameUnless(codes: readonly string[], from: string, to: string): boolean {
  return (
    quietly(codes, () => {
      renameSync(from, to)
      return true
    }) ?? false
  )
}

/** Host pids whose uid lies in a range. */
export function processesIn({ base, size }: Pick<UidRange, 'base' | 'size'>): number[] {
  return findProcesses((pid) => {
    const uid = uidOf(pid)
    return uid >= base && uid < base + size && !isZombie(pid)
  })
}

/** What other tools allotted; a range of ours that meets one of these is never handed out. */
function readForeignRanges(): [number, number][] {
  const lines = (path: string): string[][] => (quietly(['ENOENT', 'EACCES'], () => readFileSync(path, 'utf8')) ?? '').split('\n').map((line) => line.split(':'))
  const allotted = ['/etc/subuid', '/etc/subgid'].flatMap(lines).map(([, first, size]) => [Number(first), Number(size)] as [number, number])
  const users = lines('/etc/passwd').flatMap(([, , uid, gid]) => [[Number(uid), 1] as [number, number], [Number(gid), 1] as [number, number]])
  return [...allotted, ...users].filter(([first, size]) => Number.isSafeInteger(first) && size > 0)
}

function foreignSlots(ranges: readonly (readonly [number, number])[]): ReadonlySet<number> {
  const found = new Set<number>()
  for (const [first, size] of ranges) {
    const from = Math.max(0, Math.floor((first - firstId) / rangeSize))
    const to = Math.min(slots - 1, Math.floor((first + size - 1 - firstId) / rangeSize))
    for (let slot = from; slot <= to; slot++) found.add(slot)
  }
  return found
}

function quietly<T>(codes: readonly string[], act: () => T): T | undefined {
  try {
    return act()
  } catch (error) {
    if (codes.includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}
