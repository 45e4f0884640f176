/**
 * Beside compose.ts: all that engines of this user may have left on this machine that were killed, and in which order it goes: first what holds processes, with the processes,
 * then what they had. Mounts, network namespaces and abstract sockets go with the last process that has them; no cell has a loop device, nor a mount that the host sees.
 */
import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { sweepSingleIds } from './cell/lease.js'
import { SandboxError } from './contract/errors.js'
import { sweepBundles } from './drivers/oci/bundles.js'
import { sweepCgroups } from './sys/cgroups.js'
import { sweepChanges } from './sys/changes-store.js'
import { sweepDaemons } from './sys/daemon-sweep.js'
import { describeAddress, engineAddress } from './sys/docker/address.js'
import { sweepDrafts } from './sys/draft.js'
import { sweepDownloads } from './sys/host-folder-private.js'
import { sweepNotes } from './sys/notes.js'
import {
  cacheFolder,
  changesFolder,
  historyFolder,
  keyFolder,
  type PlaceFacts,
  processFacts,
  snapshotFolder,
  stateFolder,
  templateFolder,
} from './sys/places.js'
import { ownerFirst, sweepNames } from './sys/sweep-names.js'
import { Sweeper } from './sys/sweeper.js'
import { sweepTempFolders } from './sys/temp-folder.js'
import { rangesIn, sweepRanges } from './sys/uid-ranges.js'
import { sweepSnapshots } from './templates/snapshots.js'
import { sweepTemplates, sweepTrees } from './templates/sweeping.js'

export { type Finding, Sweeper } from './sys/sweeper.js'

/** All that has to do with processes, and all files. Makes nothing. Throws only where what is found could be somebody else's. */
export async function sweepMachine(sweeper = new Sweeper(), facts = processFacts()): Promise<void> {
  const state = ownState(facts)
  await sweepCgroups(sweeper)
  if (state !== undefined) {
    sweepBundles(state, sweeper)
    sweepRanges(rangesIn(state), { sweeper })
    sweepSingleIds(state, sweeper)
    await sweepDaemons(state, sweeper)
    await sweepNotes(state, sweeper)
  }
  await sweepFiles(sweeper, facts)
}

/** Those of the container engine that this process would use, where one is. */
export async function sweepContainers(sweeper: Sweeper): Promise<void> {
  const address = engineAddress()
  if (address.kind === 'socket' && !lstatSync(address.path, { throwIfNoEntry: false })?.isSocket()) return
  const [sweeps, { createEngineClient }] = await Promise.all([import('./drivers/docker/sweep.js'), import('./sys/docker/client.js')])
  const engine = createEngineClient(address)
  const sweep = async () => {
    await sweeps.sweepContainers(engine, sweeper)
    await sweeps.sweepDisks(engine, sweeper)
  }
  await sweep().catch((error: unknown) =>
    sweeper.keep({ kind: 'container', what: describeAddress(address), owner: '' }, `containers were not looked for: ${(error as Error).message}`),
  )
}

async function sweepFiles(sweeper: Sweeper, facts: PlaceFacts): Promise<void> {
  const [cache, changes] = [cacheFolder(facts), changesFolder(facts)]
  await sweepDownloads(cache, sweeper)
  await sweepTempFolders('glovebox-', { sweeper })
  await sweepSnapshots(snapshotFolder(facts), sweeper)
  await sweepTemplates(templateFolder(facts), sweeper)
  await sweepTrees(cache, sweeper)
  await sweepNames(join(cache, 'packages', 'drafts'), { kind: 'package', pattern: ownerFirst, sweeper })
  await sweepChanges(changes, sweeper)
  for (const folder of [keyFolder(facts), historyFolder(facts), cache, ...foldersIn(cache)]) sweepDrafts(folder, sweeper)
}

/** What others could write to says nothing about processes of ours. */
function ownState(facts: PlaceFacts): string | undefined {
  const folder = stateFolder(facts)
  const status = lstatSync(folder, { throwIfNoEntry: false })
  if (status === undefined) return undefined
  const isOurs = status.isDirectory() && status.uid === facts.uid && (status.mode & 0o022) === 0
  if (!isOurs) throw new SandboxError('unavailable', `${folder} can be written by others, or is theirs`, { hint: `ls -ld ${folder}` })
  return folder
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [join(folder, entry.name)] : []))
  } catch {
    return []
  }
}
