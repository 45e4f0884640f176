/**
 * Groups of a cell that is over, for another. To make and to remove them costs a tenth of a cell, and the more the more cells there are: the kernel looks through every file system of the machine when a
 * group that counts memory goes. They serve again only if they say what new ones would: see `renew` of each controller.
 */
import type { Group } from './cgroup-files.js'
import type { Levels } from './cgroup-levels.js'
import { controllerFiles } from './cgroup-limits.js'

/** Whether they count as new ones do from now on. False where the kernel cannot begin anew, anything is left in them, or what was done in them would show. */
export function renewLevels(levels: readonly Levels[]): boolean {
  try {
    return levels.every(({ hierarchy }) => hierarchy.version === 1) && levels.every(isEmpty) && levels.every(renewLevel)
  } catch {
    return false
  }
}

/** Not even a process that has ended and that nobody has heard of yet. */
function isEmpty({ hierarchy, cell }: Levels): boolean {
  return !hierarchy.controllers.includes('pids') || cell.number('pids.current') === 0
}

function renewLevel({ hierarchy, cell, guest }: Levels): boolean {
  return hierarchy.controllers.every((name) => {
    const files = controllerFiles[1][name]
    if (files?.renew === undefined) return true
    // Of processes nothing is told but the guests'; of memory both have to be free, so that neither bounds the next one sooner.
    const groups = name === 'memory' ? new Set<Group>([guest, cell]) : [guest]
    return [...groups].every((group) => files.renew?.(group))
  })
}
