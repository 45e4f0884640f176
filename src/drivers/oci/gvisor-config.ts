import { type CellPlan, givenCapabilities, launcherArguments, wardenId, wardenPath } from '../../cell/arguments.js'
import { diskPlace, sandboxWardenArguments, shownMounts, type ShownMount } from '../../cell/gvisor/warden-words.js'
import { rootWords } from '../../cell/root-words.js'
import type { ContainerOrder } from './config.js'

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
    ...stagedMounts(plan).flatMap(({ name, access, target }) => ['--give', name, access, target]),
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
      args: [wardenPath, ...sandboxWardenArguments(plan, 'of-host')],
      capabilities: { bounding: capabilities, effective: capabilities, inheritable: capabilities, permitted: capabilities },
      noNewPrivileges: true,
    },
    mounts: [
      // Nothing in it can be changed by anyone: it tells of gVisor, not of the machine.
      { destination: '/proc', type: 'proc', source: 'proc', options: ['ro', 'nosuid', 'nodev', 'noexec'] },
      // Nobody in the cell owns it, or could: a mount that cannot be written to would keep gVisor from opening devices.
      { destination: '/dev', type: 'bind', source: '/tmp/dev', options: ['rbind', 'nosuid', 'noexec'] },
      { destination: diskPlace, type: 'bind', source: '/tmp/disk/layered', options: ['bind', 'nosuid', 'nodev'] },
      ...stagedMounts(plan).map(({ name, target, access }) => ({
        destination: target,
        type: 'bind',
        source: `/tmp/${name}`,
        options: ['bind', access, 'nosuid', 'nodev'],
      })),
    ],
    linux: { namespaces: ['user', 'mount', 'pid', 'network', 'ipc', 'uts'].map((type) => ({ type })), uidMappings: map, gidMappings: map },
  }
}

/** What gVisor mounts of what the launcher staged: the spec's mounts, and the warden. */
export function stagedMounts(plan: CellPlan): ShownMount[] {
  return [...shownMounts(plan), { name: 'warden', access: 'ro', target: wardenPath, source: plan.programs.warden }]
}
