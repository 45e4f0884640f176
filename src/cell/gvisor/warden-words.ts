import { type CellPlan, diskFolders, wardenId, wardenPath } from '../arguments.js'
import { networkArguments } from '../cell-network.js'
import { mountPlace, placedMounts } from '../placed-mounts.js'

/** Where the disk is, until the warden has bound its folders. The host makes it, so that the host's kernel holds its size. */
export const diskPlace = '/.disk'
/** Neither tells of the machine, but nobody inside has use for them. */
const secrets = ['/proc/cmdline', '/proc/sentry-meminfo']

/** What gVisor's own /dev has besides; the deepest first. */
const needless = ['/dev/fuse', '/dev/net/tun', '/dev/net']

/** Whose /dev and /proc it is: what the host made, with /dev/shm on the disk, or what gVisor mounts unless it is told otherwise. */
export type Devices = 'of-host' | 'of-gvisor'

/** What gVisor has no use for is left out: there is nothing in its /proc to mask, and of its own it mounts what programs need of /dev. */
export function sandboxWardenArguments(plan: CellPlan, devices: Devices): string[] {
  const { spec } = plan
  return [
    ...(devices === 'of-gvisor' ? ['--proc', ...needless.flatMap((path) => ['--remove', path])] : []),
    ...['--disk-at', diskPlace],
    ...sandboxFolders(plan, devices).flatMap(({ path, owner, mode }) => ['--writable', path, `${owner}`, `${owner}`, mode]),
    ...placedMounts(plan).flatMap(({ from, target }) => (isOnDisk(plan, target) ? ['--bind', from, target] : [])),
    // To unmount what the gofer has mounted as well would only show that.
    ...[...secrets, diskPlace, wardenPath, ...(placedMounts(plan).length > 0 ? [mountPlace] : [])].flatMap((path) => ['--mask', path]),
    ...['--release', '/sys'],
    ...['--guests', `${spec.limits.processes}`],
    ...['--become', `${wardenId}`, `${wardenId}`],
    ...['--tell', '--hide', '--once'],
    ...networkArguments(spec),
  ]
}

export interface ShownMount {
  /** As the launcher staged it. */
  readonly name: string
  readonly access: 'ro' | 'rw'
  readonly target: string
  /** Of the host. */
  readonly source: string
}

/** What gVisor mounts of the spec's. The disk would cover what is mounted in its folders: that is bound there by the warden. */
export function shownMounts(plan: CellPlan): ShownMount[] {
  return placedMounts(plan).map(({ name, mode, from, target, source }) => ({
    name,
    access: mode === 'rw' ? 'rw' : 'ro',
    target: isOnDisk(plan, target) ? from : target,
    source: source.path,
  }))
}

function isOnDisk(plan: CellPlan, target: string): boolean {
  return diskFolders(plan).some(({ path }) => target.startsWith(`${path}/`))
}

function sandboxFolders(plan: CellPlan, devices: Devices): ReturnType<typeof diskFolders> {
  return diskFolders(plan).filter(({ path }) => devices === 'of-gvisor' || !path.startsWith('/dev/'))
}
