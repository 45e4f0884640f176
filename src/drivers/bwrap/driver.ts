import { type CellDriverOptions, createCellDriver } from '../../cell/cell-driver.js'
import type { Driver } from '../../contract/driver.js'
import { type BwrapPrograms, cellArgv } from './arguments.js'
import { findPrograms } from './cell-programs.js'
import { bwrapMechanism } from './probe.js'

export interface BwrapDriverOptions extends CellDriverOptions {
  /** What cells are built with, instead of what is found. */
  readonly programs?: Partial<BwrapPrograms>
}

/** Nothing is touched before the driver is used. */
export function createBwrapDriver({ programs: given, ...options }: BwrapDriverOptions = {}): Driver {
  // Whoever names a bwrap wants that one.
  const builds = given?.bwrap === undefined
  return createCellDriver({
    ...options,
    mechanism: bwrapMechanism,
    isOwnLauncher: given?.launcher === undefined,
    findPrograms: () => findPrograms(given),
    prepare: ({ lease, programs }) => ({ lease, argv: (plan) => cellArgv({ ...plan, programs, builds }) }),
  })
}
