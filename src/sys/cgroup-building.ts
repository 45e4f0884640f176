import type { Group } from './cgroup-files.js'
import { handedDown, type Levels, runControllers } from './cgroup-levels.js'

/** Most cells are empty when they end, and then nothing has to be listed, killed or thawed. The kernel removes no group with anything in it. */
export function isRemovedAtOnce({ cell, warden, guest }: Levels): boolean {
  return [...new Set([guest, warden, cell])].every((group) => group === undefined || group.tryRemove() === undefined)
}

export function buildGroups({ hierarchy, cell, warden, guest }: Levels): void {
  cell.make()
  // Before Linux 5.11 a group of version 1 counted what is beneath it only when told to, and while it was empty.
  if (hierarchy.version === 1 && hierarchy.controllers.includes('memory') && cell.number('memory.use_hierarchy') === 0) cell.write('memory.use_hierarchy', '1')
  for (const group of new Set([warden, guest])) if (group !== cell) group?.make()
}

/** What is in the cell's own group goes to `warden`, because a group with processes in it hands no controllers down. */
export function settleGroups({ hierarchy, cell, warden, guest }: Levels, writer: number | undefined): void {
  for (let left = membersOf(cell); left.length > 0; left = membersOf(cell)) for (const pid of left) moveTo(warden as Group, pid)
  cell.write('cgroup.subtree_control', handedDown(hierarchy.controllers).join(' '))
  guest.write('cgroup.subtree_control', handedDown(runControllers(hierarchy)).join(' '))
  // Whoever moves a process needs a right to the group above both.
  if (writer !== undefined) cell.giveDoor('cgroup.procs', writer)
}

function membersOf(group: Group): string[] {
  return (group.read('cgroup.procs') ?? '').split('\n').filter((pid) => Number(pid) > 0)
}

/** Quiet about one that has ended meanwhile. */
function moveTo(group: Group, pid: string): void {
  try {
    group.write('cgroup.procs', pid)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
