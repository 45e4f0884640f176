/** A folder of our own where what comes from a sandbox is made whole. No guest reaches it: no cell is ever shown the places of ours. */
import { statSync } from 'node:fs'
import { sweepDrafts } from './draft.js'
import { HostFolder } from './host-folder-handle.js'
import { cachePlace } from './places.js'
import { makeTempFolder, removeTree, sweepTempFolders, tempPlace } from './temp-folder.js'

const prefix = 'glovebox-download-'

export interface PrivateFolder extends AsyncDisposable {
  readonly folder: HostFolder
}

/** On the file system of the folder that is to be filled, where there is a place of ours on it; then what is whole is only renamed. Gone when disposed of. */
export async function makePrivateFolder(target: HostFolder): Promise<PrivateFolder> {
  const { dev } = await target.status()
  const places = [...cacheIfUsable(), await tempPlace()]
  const place = places.find((each) => statSync(each).dev === dev) ?? places[0]
  await sweepTempFolders(prefix, place)
  // What a copy to another file system left that was killed.
  sweepDrafts(`/proc/self/fd/${target.descriptor}`)
  const path = await makeTempFolder(prefix, place)
  const folder = await HostFolder.open(path)
  return {
    folder,
    [Symbol.asyncDispose]: async () => {
      await folder[Symbol.asyncDispose]()
      await removeTree(path)
    },
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
