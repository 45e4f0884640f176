import { randomId } from '../../src/sys/random-id.js'
import type { CellCgroup } from '../../src/sys/cell-cgroup.js'
import type { CgroupLimits } from '../../src/sys/cgroup-limits.js'
import { type Cgroups, detectCgroups } from '../../src/sys/cgroups.js'

const MiB = 2 ** 20

/** Cells in the cgroups of this machine, where memory, processor and processes can be held. */
export interface CgroupCells {
  readonly cgroups: Cgroups
  create(limits?: Partial<CgroupLimits> & { readonly writer?: number }): Promise<CellCgroup>
  /** Those made so far. */
  removeAll(): Promise<void>
}

/** Why not, in words, where they cannot be had. */
export function findCgroupCells(): CgroupCells | string {
  const found = detectCgroups()
  if ('unavailable' in found) return found.unavailable
  const { memory, cpus, processes } = found.enforces
  if (![memory, cpus, processes].every(({ enforced }) => enforced)) return 'not every controller can be used here'
  const made: CellCgroup[] = []
  return {
    cgroups: found,
    async create(limits = {}) {
      const cell = await found.create({ id: randomId(), memoryBytes: 64 * MiB, cpus: 0.5, processes: 20, ...limits })
      made.push(cell)
      cell.settle()
      return cell
    },
    async removeAll() {
      for (const cell of made.splice(0)) await cell.remove()
    },
  }
}
