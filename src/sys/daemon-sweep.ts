import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { sweepLocks } from './changes-lock.js'
import { type DaemonPlace, daemonPlaceNamed } from './daemon-place.js'
import { isDaemonListening, readDaemonRecord, removeDaemonFiles, withDaemonLock } from './daemon-record.js'
import { sweepDrafts } from './draft.js'
import { gone, type Sweeper } from './sweeper.js'

/** What daemons that were killed left at their places; makes nothing. */
export async function sweepDaemons(state: string, sweeper: Sweeper): Promise<void> {
  const folder = join(state, 'daemon')
  const names = namesIn(folder)
  for (const name of new Set(names.flatMap((file) => /^([0-9a-f]+)\.(?:sock|json)$/.exec(file)?.[1] ?? []))) {
    const place = daemonPlaceNamed(folder, name)
    const owner = readDaemonRecord(place)?.owner
    // Killed before it wrote down who it is: only whether it listens can be asked.
    if (owner === undefined && (await isBusy(place))) sweeper.keep({ kind: 'daemon', what: place.socket, owner: '' }, 'a daemon listens there, or is about to')
    else
      await sweeper.attemptSlowly({ kind: 'daemon', what: place.socket, owner: owner ?? '', ...(owner === undefined && { isOrphan: true }) }, () =>
        clear(place),
      )
  }
  sweepDrafts(folder, sweeper)
  await sweepLocks(folder, sweeper)
}

async function clear(place: DaemonPlace): Promise<unknown> {
  try {
    return await clearLocked(place)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    // A lock takes room. Where there is none nobody else writes a record either, and that of the dead makes some.
    rmSync(place.record, { force: true })
    return clearLocked(place)
  }
}

function clearLocked(place: DaemonPlace): Promise<unknown> {
  return withDaemonLock(place, async () => {
    if (await isDaemonListening(place)) return gone
    removeDaemonFiles(place)
    return undefined
  })
}

async function isBusy(place: DaemonPlace): Promise<boolean> {
  return isDaemonListening(place).catch(() => true)
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
