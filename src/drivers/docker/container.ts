import type { PlacedMount } from '../../cell/placed-mounts.js'
import type { CellSpec } from '../../contract/driver.js'
import type { Limits } from '../../contract/limits.js'
import { currentOwner, machineName, ownerName } from '../../sys/owner.js'
import { groupPlace } from './arguments.js'
import { inContainer, templatePlace } from './image.js'
import type { Dialect } from './dialect.js'
import { mountPlace } from './mounts.js'

/** By which a later engine knows whose a container is. */
export const labels = { cell: 'glovebox.cell', owner: 'glovebox.owner', machine: 'glovebox.machine' } as const

export interface ContainerOrder {
  readonly spec: CellSpec
  /** Whose groups hold the guests to their limits: ours, to which these are the doors, or those that the engine makes. */
  readonly groups: { readonly doors: readonly string[] } | 'engine'
  /** What the engine binds of this machine's: the folders of the template and these, or nothing of it. */
  readonly bound: readonly PlacedMount[] | 'nothing'
  /** What its first process is told. */
  readonly argv: readonly string[]
  readonly image: string
  /** Of the container's only process and all that it starts, on the engine's machine. */
  readonly ids: { readonly uid: number; readonly gid: number }
  readonly dialect: Dialect
  readonly openFiles: number
  /** Undefined: the engine's own choice. */
  readonly runtime: string | undefined
}

const headroomBytes = 16 * 2 ** 20
const keeperBytes = 256 * 2 ** 10
const headroomProcesses = 16
const periodUs = 100_000
const leastQuotaUs = 1000

/** What the engine is asked for. Nothing of it is privileged, and the engine's own socket is nowhere in it. */
export function containerConfig(order: ContainerOrder): object {
  const { spec, argv, image, ids } = order
  return {
    Image: image,
    User: `${ids.uid}:${ids.gid}`,
    Entrypoint: argv,
    Labels: labelsOf(spec.id),
    ...attached,
    HostConfig: hostConfig(order),
  }
}

export function labelsOf(cellId: string): Readonly<Record<string, string>> {
  return { [labels.cell]: cellId, [labels.owner]: ownerName(currentOwner()), [labels.machine]: machineName() }
}

/** A process without a network or variables, whose streams are ours. */
export const attached = {
  Cmd: [],
  Env: [],
  WorkingDir: '/',
  Hostname: 'glovebox',
  NetworkDisabled: true,
  Tty: false,
  OpenStdin: true,
  // The channel's end is the end of stdin, and so the warden's.
  StdinOnce: true,
  AttachStdin: true,
  AttachStdout: true,
  AttachStderr: true,
} as const

/** Of every container of ours. */
export const confined = {
  Privileged: false,
  CapDrop: ['ALL'],
  ReadonlyRootfs: true,
  NetworkMode: 'none',
  CgroupnsMode: 'private',
  // Everything of the channel would be written to the disk by any other.
  LogConfig: { Type: 'none', Config: {} },
  AutoRemove: true,
  Init: false,
  // The warden masks what a guest must not see of /proc; masks of the engine's would keep a liner from having a /proc of its own.
  MaskedPaths: [],
  ReadonlyPaths: [],
} as const

/** What a container is held to as a whole. */
export function heldTo({ memoryBytes, cpus, processes }: Pick<Limits, 'memoryBytes' | 'cpus' | 'processes'>): object {
  return {
    Memory: memoryBytes,
    // Together with swap: the same, so none.
    MemorySwap: memoryBytes,
    // As slices of time: a number of processors may not be more than there are.
    CpuPeriod: periodUs,
    CpuQuota: Math.max(leastQuotaUs, Math.round(cpus * periodUs)),
    PidsLimit: processes,
  }
}

function hostConfig(order: ContainerOrder): object {
  const { spec, dialect, openFiles, runtime } = order
  const { memoryBytes, cpus, processes } = spec.limits
  // Groups of ours count what serves the guests apart; an engine's are all that there is, and hold what was asked for.
  const isExact = order.groups === 'engine'
  const bound = memoryBytes + (isExact ? 0 : headroomBytes + processes * keeperBytes)
  return {
    ...confined,
    SecurityOpt: ['no-new-privileges', ...dialect.security],
    IpcMode: 'private',
    ...heldTo({ memoryBytes: bound, cpus, processes: 2 * processes + headroomProcesses }),
    ShmSize: 65_536,
    Ulimits: Object.entries({ nofile: openFiles, ...dialect.ulimits }).map(([Name, most]) => ({ Name, Soft: most, Hard: most })),
    Mounts: containerMounts(order),
    ...(runtime !== undefined && { Runtime: runtime }),
  }
}

function containerMounts({ spec, groups, bound }: ContainerOrder): object[] {
  if (bound === 'nothing') return []
  const certificates = spec.network?.certificates
  return [
    ...spec.root.binds.map(({ source }, index) => bind(source, templatePlace(index), 'ro')),
    ...(groups === 'engine' ? [] : groups.doors).map((door, index) => bind(door, groupPlace(index), 'rw')),
    ...bound.map((mount) => bind(mount.source.path, mountPlace(mount), mount.mode === 'rw' ? 'rw' : 'ro')),
    ...(certificates === undefined ? [] : [bind(certificates, inContainer.certificates, 'ro')]),
  ]
}

export function bind(source: string, target: string, mode: 'ro' | 'rw'): object {
  return { Type: 'bind', Source: source, Target: target, ReadOnly: mode === 'ro', BindOptions: { Propagation: 'rprivate' } }
}
