/** A folder of our own where what comes from a sandbox is made whole. No guest reaches it: no cell is ever shown the places of ours. */
import { existsSync, statSync } from 'node:fs'
import { SandboxError } from '../contract/errors.js'
import { printable } from '../contract/printable.js'
import { sweepDrafts } from './draft.js'
import { HostFolder } from './host-folder-handle.js'
import { DraftNotes, sweepNoted } from './host-folder-notes.js'
import { cachePlace } from './places.js'
import type { Sweeper } from './sweeper.js'
import { makeTempFolder, removeTree, sweepTempFolders, tempPlace } from './temp-folder.js'

const prefix = 'glovebox-download-'

export interface PrivateFolder extends AsyncDisposable {
  readonly folder: HostFolder
  /** Of what is copied from here to another file system. */
  readonly notes: DraftNotes
  /** Does what fills it; a disk that is full is told as the one that it is on, which need not be that of the folder that something goes to. */
  fill<Result>(act: (folder: HostFolder) => Promise<Result>): Promise<Result>
}

/** On the file system of the folder that is to be filled, where there is a place of ours on it; then what is whole is only renamed. Gone when disposed of. */
export async function makePrivateFolder(target: HostFolder): Promise<PrivateFolder> {
  const { dev } = await target.status()
  const temporary = await tempPlace()
  const places = [...cacheIfUsable(), temporary]
  const place = places.find((each) => statSync(each).dev === dev) ?? places[0] ?? temporary
  // What a copy to another file system left that was killed: folders as they are noted, then files.
  await sweepTempFolders(prefix, { place, before: sweepNoted })
  sweepDrafts(`/proc/self/fd/${target.descriptor}`)
  const path = await unlessFull(place, makeTempFolder(prefix, place))
  const folder = await HostFolder.open(path)
  return {
    folder,
    notes: new DraftNotes(path),
    fill: (act) => unlessFull(place, act(folder)),
    [Symbol.asyncDispose]: async () => {
      await folder[Symbol.asyncDispose]()
      await removeTree(path)
    },
  }
}

/** What downloads left that were killed, in the system's place for temporary files and in a cache of ours. */
export async function sweepDownloads(cache: string, sweeper: Sweeper): Promise<void> {
  for (const place of [await tempPlace(), ...(existsSync(cache) ? [cache] : [])]) await sweepTempFolders(prefix, { place, before: sweepNoted, sweeper })
}

async function unlessFull<Result>(place: string, acting: Promise<Result>): Promise<Result> {
  try {
    return await acting
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    const why = `download: there is no room left in ${printable(place)} on this machine, where all of it is put together first`
    throw new SandboxError('full', why, { hint: `df -h -- '${printable(place)}'`, cause: error })
  }
}

/** A process without a home of its own still has temporary files. */
function cacheIfUsable(): string[] {
  try {
    return [cachePlace()]
  } catch {
    return []
  }
}
