import type { PlannedCellCgroup } from '../sys/cell-cgroup.js'

/** Of a cell that is over, for another like it. */
export interface KeptLease<Ids> {
  /** Only a cell with the same key may have it. */
  readonly key: string
  readonly ids: Ids
  readonly planned: PlannedCellCgroup
}

/**
 * What ended cells had of the host's, as new, for those that follow: a record on the disk and a dozen cgroups are a tenth of what a cell costs. It is on record as ever, and is kept only while there are cells: with the last of
 * them all of it goes.
 */
export class LeaseShelf<Ids> {
  readonly #most: number
  readonly #remove: (kept: KeptLease<Ids>) => Promise<void>
  #kept: KeptLease<Ids>[] = []
  #cells = 0

  constructor({ most, remove }: { readonly most: number; readonly remove: (kept: KeptLease<Ids>) => Promise<void> }) {
    this.#most = most
    this.#remove = remove
  }

  /** Of a cell that begins now, or undefined: the one that was kept longest. */
  take(key: string | undefined): KeptLease<Ids> | undefined {
    this.#cells += 1
    const index = this.#kept.findIndex((kept) => kept.key === key)
    return index < 0 ? undefined : this.#kept.splice(index, 1)[0]
  }

  /** Whether what a cell had that is over now would be kept. */
  get hasRoom(): boolean {
    return this.#kept.length < Math.min(this.#most, this.#cells - 1)
  }

  /** Of a cell that is over. Resolves when all is gone that is not kept. */
  async put(kept: KeptLease<Ids> | undefined): Promise<void> {
    this.#cells -= 1
    if (kept) this.#kept.push(kept)
    const most = Math.min(this.#most, this.#cells)
    const rest = this.#kept.splice(0, Math.max(0, this.#kept.length - most))
    for (const each of rest) await this.#remove(each)
  }
}
