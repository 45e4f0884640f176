import { type CellPlan, guestDoors, launcherArguments, wardenId } from '../../cell/arguments.js'
import { inspectorDescriptor } from '../../cell/placed-mounts.js'
import { looseMounts, rootWords } from '../../cell/root-words.js'
import type { CgroupPlace } from './cgroup-place.js'

/** What a runtime hands on begins with this descriptor. */
export const firstDoor = 3

export interface ContainerCommand {
  readonly plan: CellPlan
  readonly place: CgroupPlace
  /** The runtime and its words. */
  readonly runtime: readonly string[]
  /** The program of the runtime, where the launcher is to keep a copy of it in memory. */
  readonly copied?: string | undefined
}

/** The one command that builds a cell: the launcher with its arguments, what the root is made of, and the runtime with its own. */
export function containerArgv({ plan, place, runtime, copied }: ContainerCommand): [string, ...string[]] {
  if (plan.ids.kind === 'single') throw new Error('a cell with a single id')
  const joins = place.joiner === 'runtime' ? [] : (plan.cgroups?.joins ?? [])
  const staged = launcherArguments({ ...plan, ...(plan.cgroups && { cgroups: { ...plan.cgroups, joins } }) })
  return [
    plan.programs.launcher,
    ...staged,
    ...['--inspect', `${inspectorDescriptor(plan)}`],
    ...looseMounts(plan).flatMap(({ name, access, target }) => (name === undefined ? [] : ['--give', name, access, target])),
    ...place.shown.flatMap(({ folder, mountPoint }) => ['--show', folder, mountPoint]),
    ...place.fixed.flatMap((path) => ['--fix', path]),
    ...place.hidden.flatMap((path) => ['--hide', path]),
    ...(copied === undefined ? [] : ['--copied', copied]),
    ...['--runtime', `${plan.ids.base + wardenId}`, '--'],
    ...rootWords(plan, ['--dir', '/proc', '--dir', '/dev']),
    ...['--', ...runtime],
  ]
}

/** How many descriptors the runtime hands on. */
export function doorCount(plan: CellPlan): number {
  return guestDoors(plan).length
}
