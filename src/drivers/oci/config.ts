import { type CellPlan, cellVariable, givenCapabilities, wardenArguments, wardenId, wardenPath } from '../../cell/arguments.js'
import { isOverlay } from '../../cell/root-mode.js'
import { looseMounts } from '../../cell/root-words.js'

/** Where the launcher leaves the root of a cell, in a mount namespace that it shares with the runtime alone. */
export const newRoot = '/tmp/.root'

export interface ContainerOrder {
  readonly plan: CellPlan
  /** From the top of every hierarchy that the runtime can see; undefined where it is to leave cgroups alone. */
  readonly cgroupsPath: string | undefined
}

/**
 * The container of a cell, as the OCI runtime specification tells it. The root is there already with all that is mounted in it, so the runtime is left to mount
 * what only exists in the cell's own namespaces; masks, limits and filters are the warden's and the engine's.
 */
export function containerConfig({ plan, cgroupsPath }: ContainerOrder): object {
  const capabilities = givenCapabilities(plan).map((name) => `CAP_${name}`)
  return {
    ociVersion: '1.0.2',
    hostname: 'glovebox',
    root: { path: newRoot, readonly: false },
    process: {
      terminal: false,
      cwd: '/',
      user: { uid: wardenId, gid: wardenId },
      env: [`${cellVariable}=${plan.spec.id}`],
      args: [wardenPath, ...wardenArguments(plan)],
      capabilities: { bounding: capabilities, effective: capabilities, inheritable: capabilities, permitted: capabilities, ambient: capabilities },
      noNewPrivileges: true,
    },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'nodev', 'noexec'] },
      // What is bound has the flags that it was staged with; crun gives what lies below it others, so that is bound by itself.
      { destination: '/dev', type: 'bind', source: '/tmp/dev', options: ['rbind'] },
      ...(isOverlay(plan) ? [{ destination: '/dev/shm', type: 'bind', source: '/tmp/disk/shm', options: ['bind'] }] : []),
      ...looseMounts(plan).map(({ source, target }) => ({ destination: target, type: 'bind', source, options: ['bind'] })),
    ],
    linux: { ...namespacesOf(plan), ...(cgroupsPath !== undefined && { cgroupsPath, resources: { devices: [{ allow: false, access: 'rwm' }] } }) },
  }
}

/** The cgroup namespace is the warden's to make where it enters the groups that are to be seen from there. */
function namespacesOf({ ids, isEntering = false }: CellPlan): object {
  if (ids.kind === 'single') return {}
  const map = [{ containerID: 0, hostID: ids.base, size: ids.size }]
  const kinds = ['user', 'mount', 'pid', 'network', 'ipc', 'uts', ...(isEntering ? [] : ['cgroup'])]
  return { namespaces: kinds.map((type) => ({ type })), uidMappings: map, gidMappings: map }
}
