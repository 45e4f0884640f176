import { removeCellGroups } from './cell-cgroup.js'
import { type CgroupTree, Group } from './cgroup-files.js'
import type { CgroupMount } from './cgroup-mounts.js'
import { describeProcess } from './processes.js'
import { Sweeper } from './sweeper.js'

export interface GroupSweep {
  readonly tree: CgroupTree
  /** With which the names of cells begin, before that of their owner. */
  readonly namePrefix: string
  readonly sweeper?: Sweeper | undefined
}

/**
 * Removes the groups of cells whose owner is dead, with all that runs in them; resolves to how many cells that were. They are sought everywhere: the engine that made them may have
 * had another place of its own.
 */
export async function sweepGroups(mounts: readonly CgroupMount[], { tree, namePrefix, sweeper = new Sweeper() }: GroupSweep): Promise<number> {
  const groups = mounts.flatMap(({ mountPoint }) => groupsBelow(new Group(mountPoint, tree), { tree, namePrefix }))
  const cells = new Map<string, Group[]>()
  for (const group of groups) cells.set(group.name, [...(cells.get(group.name) ?? []), group])
  let removed = 0
  for (const [name, ofCell] of cells) {
    const owner = name.slice(namePrefix.length, name.lastIndexOf('.'))
    await sweeper.attemptSlowly({ kind: 'cgroup', what: name.slice(name.lastIndexOf('.') + 1), owner }, async () => {
      const processes = membersOf(ofCell)
      await removeCellGroups(ofCell)
      sweeper.ended(processes, owner)
      removed += 1
    })
  }
  return removed
}

function membersOf(groups: readonly Group[]): string[] {
  const lists = groups.flatMap((group) => [group, ...group.descendants()]).map((group) => group.read('cgroup.procs') ?? '')
  const pids = lists.flatMap((list) => list.split('\n').map(Number)).filter((pid) => pid > 0)
  return [...new Set(pids)].map(describeProcess)
}

function groupsBelow(group: Group, sweep: Pick<GroupSweep, 'tree' | 'namePrefix'>): Group[] {
  return sweep.tree.list(group.folder).flatMap((name) => {
    const below = group.below(name)
    if (!name.startsWith(sweep.namePrefix)) return groupsBelow(below, sweep)
    // Those of other users are theirs to sweep, and a name is no proof.
    return sweep.tree.isOwn(below.folder) ? [below] : []
  })
}
