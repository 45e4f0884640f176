import {
  type CellCgroups,
  type CellPlan,
  cellVariable,
  deviceLinks,
  givenCapabilities,
  guestDoors,
  hostDevices,
  userId,
  wardenArguments,
  wardenPath,
  writableFolders,
} from '../../cell/arguments.js'
import { copyCertificates, readCertificates } from '../../cell/cell-network.js'
import { placedMounts } from '../../cell/placed-mounts.js'
import { inContainer, templatePlace } from './image.js'
import { mountPlace } from './mounts.js'

/** What the first process of the container is told: the launcher, the words for a cell, and the warden with its own. */
export function containerArgv(plan: CellPlan, { isApart }: { readonly isApart: boolean } = { isApart: false }): [string, ...string[]] {
  const { cgroups } = plan
  const within = cgroups && groupsInContainer(cgroups)
  const doors = guestDoors(within ? { cgroups: within } : {}).flatMap(({ opened }) => opened)
  return [
    inContainer.launcher,
    ...['--within', `${userId}`, ...(isApart ? ['--apart'] : []), '--await', ...doors, ...readCertificates(plan.spec, inContainer.certificates)],
    ...['--', 'bwrap', ...rootWords(plan), '--', wardenPath],
    ...wardenArguments({ ...plan, ...(within && { cgroups: within }) }),
  ]
}

/** The doors to the groups of guests, in the order in which they are bound. The container's first process is put into its own groups from outside. */
export function groupDoors({ guestJoins, runJoins }: CellCgroups): string[] {
  return [...guestJoins, ...runJoins.map(({ folder }) => folder)]
}

export function groupPlace(index: number): string {
  return `${inContainer.groups}/${index}`
}

function groupsInContainer({ guestJoins, runJoins }: CellCgroups): CellCgroups {
  return {
    joins: [],
    guestJoins: guestJoins.map((_, index) => groupPlace(index)),
    runJoins: runJoins.map(({ file }, index) => ({ folder: groupPlace(guestJoins.length + index), file })),
  }
}

/** What the root of the cell is made of, in the words of bwrap. */
function rootWords(plan: CellPlan): string[] {
  const { spec, ids } = plan
  return [
    ...['--unshare-all', '--hostname', 'glovebox', '--clearenv', '--setenv', cellVariable, spec.id],
    ...['--cap-drop', 'ALL', ...givenCapabilities(plan).flatMap((name) => ['--cap-add', `CAP_${name}`])],
    ...spec.root.binds.flatMap(({ target }, index) => ['--ro-bind', templatePlace(index), target]),
    ...(spec.root.folders ?? []).flatMap((path) => ['--dir', path]),
    ...spec.root.symlinks.flatMap(({ path, target }) => ['--symlink', target, path]),
    ...['--proc', '/proc', '--tmpfs', '/dev'],
    ...hostDevices.flatMap((path) => ['--dev-bind', path, path]),
    ...deviceLinks.flatMap(([target, path]) => ['--symlink', target, path]),
    ...['--dir', '/dev/pts', '--dir', '/dev/shm'],
    ...writableFolders(ids).flatMap(({ path }) => (path.startsWith('/dev/') ? [] : ['--dir', path])),
    ...['--dir', '/run', '--symlink', '/run', '/var/run'],
    ...copyCertificates(spec),
    ...placedMounts(plan).flatMap((mount) => [mount.mode === 'rw' ? '--bind' : '--ro-bind', mountPlace(mount), mount.from]),
    ...['--ro-bind', inContainer.warden, wardenPath],
  ]
}
