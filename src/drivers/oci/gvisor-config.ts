import { type CellPlan, diskFolders, givenCapabilities, launcherArguments, wardenId, wardenPath } from '../../cell/arguments.js'
import { networkArguments } from '../../cell/cell-network.js'
import { mountPlace, placedMounts } from '../../cell/placed-mounts.js'
import { rootWords } from '../../cell/root-words.js'
import type { ContainerOrder } from './config.js'

/** Where the disk is, until the warden has bound its folders. The host makes it, so that the host's kernel holds its size. */
export const diskPlace = '/.disk'
/** Neither tells of the machine, but nobody inside has use for them. */
const secrets = ['/proc/cmdline', '/proc/sentry-meminfo']
const rootPath = '/tmp/.root'

/** The launcher with its arguments, what the root is made of, and the runtime with its own. The sandbox of gVisor is all in the groups that the launcher enters. */
export function sandboxArgv(plan: CellPlan, runtime: readonly string[]): [string, ...string[]] {
  const { ids, spec, programs } = plan
  if (ids.kind === 'single') throw new Error('a cell with a single id')
  return [
    programs.launcher,
    ...launcherArguments(plan),
    '--closed',
    ...['--root', `${ids.base}`, `${spec.limits.diskBytes}`, `${spec.limits.inodes}`],
    ...shownMounts(plan).flatMap(({ name, access, target }) => ['--give', name, access, target]),
    ...['--runtime', `${ids.base + wardenId}`, '--'],
    ...rootWords(
      plan,
      ['/proc', '/dev', '/sys', diskPlace].flatMap((path) => ['--dir', path]),
    ),
    ...['--', ...runtime],
  ]
}

/** As the OCI runtime specification tells it. The first process is root at first: to another gVisor of our days gives no capabilities. */
export function sandboxConfig({ plan }: Pick<ContainerOrder, 'plan'>): object {
  const { ids } = plan
  if (ids.kind === 'single') throw new Error('a cell with a single id')
  const capabilities = givenCapabilities(plan).map((name) => `CAP_${name}`)
  const map = [{ containerID: 0, hostID: ids.base, size: ids.size }]
  return {
    ociVersion: '1.0.2',
    hostname: 'glovebox',
    // It is read-only already, which gVisor cannot make it where others may not change its flags.
    root: { path: rootPath, readonly: false },
    process: {
      terminal: false,
      cwd: '/',
      user: { uid: 0, gid: 0 },
      env: [],
      args: [wardenPath, ...sandboxWardenArguments(plan)],
      capabilities: { bounding: capabilities, effective: capabilities, inheritable: capabilities, permitted: capabilities },
      noNewPrivileges: true,
    },
    mounts: [
      // Nothing in it can be changed by anyone: it tells of gVisor, not of the machine.
      { destination: '/proc', type: 'proc', source: 'proc', options: ['ro', 'nosuid', 'nodev', 'noexec'] },
      // Nobody in the cell owns it, or could: a mount that cannot be written to would keep gVisor from opening devices.
      { destination: '/dev', type: 'bind', source: '/tmp/dev', options: ['rbind', 'nosuid', 'noexec'] },
      { destination: diskPlace, type: 'bind', source: '/tmp/disk/layered', options: ['bind', 'nosuid', 'nodev'] },
      ...shownMounts(plan).map(({ name, target, access }) => ({
        destination: target,
        type: 'bind',
        source: `/tmp/${name}`,
        options: ['bind', access, 'nosuid', 'nodev'],
      })),
    ],
    linux: { namespaces: ['user', 'mount', 'pid', 'network', 'ipc', 'uts'].map((type) => ({ type })), uidMappings: map, gidMappings: map },
  }
}

/** What gVisor has no use for is left out: there is nothing in its /proc to mask, and of its own it mounts what programs need of /dev. */
function sandboxWardenArguments(plan: CellPlan): string[] {
  const { spec } = plan
  return [
    ...['--disk-at', diskPlace],
    ...sandboxFolders(plan).flatMap(({ path, owner, mode }) => ['--writable', path, `${owner}`, `${owner}`, mode]),
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
  /** Undefined: it is the warden. */
  readonly source: string | undefined
}

/** What gVisor mounts of the host's. The disk would cover what is mounted in its folders: that is bound there by the warden. */
export function shownMounts(plan: CellPlan): ShownMount[] {
  const placed = placedMounts(plan).map(
    ({ name, mode, from, target, source }): ShownMount => ({
      name,
      access: mode === 'rw' ? 'rw' : 'ro',
      target: isOnDisk(plan, target) ? from : target,
      source: source.path,
    }),
  )
  return [...placed, { name: 'warden', access: 'ro', target: wardenPath, source: undefined }]
}

function isOnDisk(plan: CellPlan, target: string): boolean {
  return diskFolders(plan).some(({ path }) => target.startsWith(`${path}/`))
}

/** /dev/shm lies on the disk already. */
function sandboxFolders(plan: CellPlan): ReturnType<typeof diskFolders> {
  return diskFolders(plan).filter(({ path }) => !path.startsWith('/dev/'))
}
