/** What builders that were killed left in a store of templates: drafts, halves of downloads, steps of Dockerfiles, and marks of sandboxes that are over. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { sweepLocks } from '../sys/changes-lock.js'
import { sweepDrafts } from '../sys/draft.js'
import { ownerFirst, sweepNames } from '../sys/sweep-names.js'
import type { Sweeper } from '../sys/sweeper.js'
import { sweepSnapshots } from './snapshots.js'

/** Makes nothing. Templates without a name are for `glovebox template prune`. */
export async function sweepTemplates(folder: string, sweeper: Sweeper): Promise<void> {
  await sweepNames(join(folder, 'drafts'), { kind: 'template', pattern: ownerFirst, sweeper })
  for (const object of await readdir(join(folder, 'uses')).catch(() => []))
    await sweepNames(join(folder, 'uses', object), { kind: 'template', pattern: ownerFirst, sweeper })
  sweepDrafts(join(folder, 'blobs'), sweeper)
  await sweepSnapshots(join(folder, 'steps'), sweeper)
  await sweepLocks(folder, sweeper)
}

/** The trees that all cells of a user share, half-made. */
export function sweepTrees(cache: string, sweeper: Sweeper): Promise<void> {
  return sweepNames(join(cache, 'templates'), { kind: 'template', pattern: /^new-([^-]+)-/, sweeper })
}
