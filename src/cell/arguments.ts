import type { CellSpec, GuestUser } from '../contract/driver.js'
import type { MountSource } from '../sys/mount-source.js'
import { type Capability, capabilityMask, rootCapabilities, singleIdWardenCapabilities, wardenCapabilities } from './capabilities.js'
import { networkArguments, networkCapabilities, passCertificates } from './cell-network.js'
import { certificatesDescriptor, hasOverlays, mappedOwner, placedMounts } from './placed-mounts.js'
import { isOverlay } from './root-mode.js'

/** Whose ids a cell has: a range of the host's for itself, or only the one of whoever started it. */
export type CellIds = IdRange | SingleId

export interface IdRange {
  readonly kind: 'range'
  readonly base: number
  readonly size: number
  /** Where nobody is to be root in the cell, whatever ids there are. */
  readonly hasRoot?: false
}

export interface SingleId {
  readonly kind: 'single'
  /** On the host, where its groups are not those of whoever started it: this is its only one. */
  readonly host?: { readonly uid: number; readonly gid: number }
}

/** What every cell is built with; what else a mechanism needs is its own. */
export interface CellPrograms {
  readonly launcher: string
  readonly warden: string
}

export interface CellCgroups {
  /** Files through which the cell's first process enters its cgroups, before anything else. */
  readonly joins: readonly string[]
  /** Files through which each guest program enters its own. */
  readonly guestJoins: readonly string[]
  /** Folders in which each run has a group of its own, and the file there through which its program enters. */
  readonly runJoins: readonly { readonly folder: string; readonly file: string }[]
}

export interface CellPlan {
  readonly spec: CellSpec
  readonly ids: CellIds
  readonly programs: CellPrograms
  /** The process whose death ends the cell. */
  readonly ownerPid: number
  readonly cgroups?: CellCgroups
  /** The sources of the spec's mounts, in their order: the launcher inherits their descriptors from 3 up. */
  readonly sources?: readonly MountSource[]
  /** Folders of the host whose inodes the cell shares, because the kernel would not veil them. */
  readonly unveilable?: ReadonlySet<string>
  /**
   * How the sources of a cell with a single id come into it. Not given: they are bound by their paths, and the warden compares what was bound with the descriptors.
   * `engine`: the same by a container engine, and whoever asked that for it compares. `put`: from the descriptors, with their owners mapped.
   */
  readonly arrival?: 'engine' | 'put'
  /** The first of the descriptors through which guests enter their cgroups; a runtime may hand on only those from 3 up. */
  readonly firstDoor?: number
  /** Whether the warden enters the cell's groups itself, by descriptors that it is handed after those; the launcher, or whoever it starts, unless said. */
  readonly isEntering?: boolean
}

export const workdir = '/workspace'
export const rootHome = '/root'
export const userId = 1000
/** Of the warden, within the cell's ids. */
export const wardenId = 65_532

/** Of whoever makes liners, within the cell's ids. */
export const cradleId = 65_531

/** The same where there may be only one. */
export function cradleIdOf(ids: CellIds): number {
  return ids.kind === 'single' ? userId : cradleId
}

/** Where the warden is bound; what stays there after the warden let go of it is an empty file that tells a guest where it is. */
export const wardenPath = '/.glovebox'
/** Marks the runtime's own processes of a cell on the host, so that a later engine finds those a killed one left. */
export const cellVariable = 'GLOVEBOX_CELL'

const usualFirstDoor = 10
/** Where what is written over the root is bound, until the warden holds it open. */
export const layersPlace = '/.layers'

const devices = ['null', 'zero', 'full', 'random', 'urandom', 'tty']
export const hostDevices = devices.map((name) => `/dev/${name}`)

/** What programs expect in /dev beside devices: where a link leads, and its place. */
export const deviceLinks: readonly (readonly [string, string])[] = [
  ['/proc/self/fd', '/dev/fd'],
  ['/proc/self/fd/0', '/dev/stdin'],
  ['/proc/self/fd/1', '/dev/stdout'],
  ['/proc/self/fd/2', '/dev/stderr'],
  ['pts/ptmx', '/dev/ptmx'],
]

/** What /proc tells of the machine rather than of the cell. */
export const masked = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/bus',
  '/proc/cmdline',
  '/proc/config.gz',
  '/proc/diskstats',
  '/proc/interrupts',
  '/proc/iomem',
  '/proc/ioports',
  '/proc/kallsyms',
  '/proc/kcore',
  '/proc/key-users',
  '/proc/keys',
  '/proc/kpagecgroup',
  '/proc/kpagecount',
  '/proc/kpageflags',
  '/proc/latency_stats',
  '/proc/modules',
  '/proc/sched_debug',
  '/proc/scsi',
  '/proc/slabinfo',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/vmallocinfo',
]
export const readOnly = ['/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger', '/dev', '/']

/** The users that a run in such a cell may have. */
export function guestUsers(ids: CellIds): GuestUser[] {
  const user: GuestUser = { name: 'user', uid: userId, gid: userId, home: '/home/user', capabilities: 0n }
  if (!hasRoot(ids)) return [user]
  return [user, { name: 'root', uid: 0, gid: 0, home: rootHome, capabilities: capabilityMask(rootCapabilities) }]
}

function hasRoot(ids: CellIds): boolean {
  return ids.kind === 'range' && ids.hasRoot !== false
}

/** What the launcher stages and opens before the runtime starts. */
export function launcherArguments(plan: CellPlan): string[] {
  const { spec, ids, ownerPid, programs, cgroups, unveilable } = plan
  const joins = (plan.isEntering ? [] : (cgroups?.joins ?? [])).flatMap((path) => ['--join', path])
  const certificates = passCertificates(spec, certificatesDescriptor(plan))
  const common = ['--parent', `${ownerPid}`, ...(cgroups ? ['--await'] : []), ...joins, ...guestDoors(plan).flatMap(({ opened }) => opened), ...certificates]
  const placed = placedMounts(plan)
  if (ids.kind === 'single') return [...common, ...placed.flatMap(({ inherited, handed }) => ['--pass', `${inherited}`, `${handed}`])]
  const { diskBytes, inodes } = spec.limits
  return [
    ...common,
    ...(isOverlay(plan)
      ? ['--root', `${ids.base}`, `${diskBytes}`, `${inodes}`, ...spec.root.binds.flatMap(({ source, target }) => ['--layer', target, source])]
      : spec.root.binds.flatMap(({ source }, index) => [unveilable?.has(source) ? '--stage' : '--veil', stageName(index), source])),
    ...placed.flatMap((mount) => [
      ...['--mount', `${mount.inherited}`, mount.name, mount.mode === 'ro' ? 'ro' : 'rw'],
      ...mappedOwner(mount, ids.base + userId),
    ]),
    ...['--stage', 'warden', programs.warden],
    '--devices',
  ]
}

/** An overlay acts with what the warden has when it is laid, and its own folder of work is closed to everyone. */
export function givenCapabilities(plan: CellPlan): readonly Capability[] {
  const ofNetwork = networkCapabilities(plan.spec)
  if (plan.ids.kind === 'range') return [...new Set([...wardenCapabilities, ...ofNetwork])]
  return [...singleIdWardenCapabilities, ...(hasOverlays(plan) ? (['DAC_OVERRIDE'] as const) : []), ...ofNetwork]
}

export function wardenArguments(plan: CellPlan): string[] {
  const { spec, ids } = plan
  const isSingle = ids.kind === 'single'
  const noexec = spec.commands === undefined ? '' : ',noexec'
  const placed = placedMounts(plan)
  return [
    ...(isSingle ? veiledInside(plan) : []).flatMap((path) => ['--veil', path]),
    ...(isOverlay(plan) ? [] : ['--disk', `${spec.limits.diskBytes}`, `${spec.limits.inodes}`]),
    ...ownFolders(plan).flatMap(({ path, owner, mode }) => [isOverlay(plan) ? '--folder' : '--writable', path, `${owner}`, `${owner}`, mode]),
    ...(isSingle && plan.arrival === undefined ? placed : []).flatMap(({ handed, from }) => ['--recognise', `${handed}`, from]),
    ...(isOverlay(plan) ? ['--layers', layersPlace] : []),
    ...placed.flatMap(({ from, mode, layer }) => (mode === 'overlay' ? ['--overlay', from, `${layer}`] : [])),
    ...placed.flatMap(({ from, target, mode }) => ['--place', from, target, `${mode === 'ro' ? 'ro' : 'rw'}${noexec}`]),
    ...(noexec === '' ? [] : ['--noexec']),
    '--pts',
    ...masked.flatMap((path) => ['--mask', path]),
    ...[...(isSingle ? hostDevices : []), ...readOnlyPaths(plan)].flatMap((path) => ['--readonly', path]),
    ...['--detach', wardenPath],
    ...guestDoors(plan).flatMap(({ joined }) => joined),
    ...networkArguments(spec),
    ...(spec.liners ? ['--cradle', `${cradleIdOf(ids)}`, `${cradleIdOf(ids)}`] : []),
  ]
}

type Doors = Pick<CellPlan, 'cgroups' | 'firstDoor' | 'isEntering'>

/** How the launcher opens the way into the cgroups of a guest, and of the warden where it enters them itself, and how the warden uses it. */
export function guestDoors({ cgroups, firstDoor = usualFirstDoor, isEntering = false }: Doors): { opened: string[]; joined: string[] }[] {
  const doors = [
    ...(cgroups?.guestJoins ?? []).map((path) => ({ option: '--open', path, join: '--join', file: [] })),
    ...(cgroups?.runJoins ?? []).map(({ folder, file }) => ({ option: '--open-folder', path: folder, join: '--join-below', file: [file] })),
    ...(isEntering ? (cgroups?.joins ?? []) : []).map((path) => ({ option: '--open', path, join: '--enter', file: [] })),
  ]
  return doors.map(({ option, path, join, file }, index) => {
    const descriptor = `${firstDoor + index}`
    return { opened: [option, descriptor, path], joined: [join, descriptor, ...file] }
  })
}

/** The kernel refuses to veil a folder with mounts of the host's below it, which are bound one by one: those stay as they are. */
export function veiledInside({ spec, unveilable }: CellPlan): string[] {
  const { binds } = spec.root
  const isBelow = (target: string, other: string): boolean => target.startsWith(`${other}/`)
  const standsAlone = (target: string): boolean => !binds.some((other) => isBelow(other.target, target) || isBelow(target, other.target))
  return binds.flatMap(({ source, target }) => (standsAlone(target) && !unveilable?.has(source) ? [target] : []))
}

interface WritableFolder {
  readonly path: string
  readonly owner: number
  readonly mode: string
}

export function writableFolders(ids: CellIds): WritableFolder[] {
  const root = ids.kind === 'single' ? userId : 0
  return [
    { path: workdir, owner: userId, mode: '0755' },
    { path: '/home/user', owner: userId, mode: '0755' },
    { path: '/tmp', owner: root, mode: '1777' },
    { path: '/var/tmp', owner: root, mode: '1777' },
    { path: '/dev/shm', owner: root, mode: '1777' },
    ...(hasRoot(ids) ? [{ path: rootHome, owner: 0, mode: '0700' }] : []),
  ]
}

/** The folders that share the cell's disk, each a mount of its own; one that a mount takes the place of is none of them. */
export function diskFolders({ spec, ids }: CellPlan): WritableFolder[] {
  return writableFolders(ids).filter(({ path }) => !spec.mounts.some(({ target }) => target === path))
}

/** What the warden makes ready for its guests. Where the whole root is the disk, these are plain folders of it, beside those that were made on the way. */
export function ownFolders(plan: CellPlan): WritableFolder[] {
  if (!isOverlay(plan)) return diskFolders(plan)
  const above = ['/home', '/var', '/run'].map((path) => ({ path, owner: 0, mode: '0755' }))
  return [...above, ...writableFolders(plan.ids).filter(({ path }) => !path.startsWith('/dev/'))]
}

export function readOnlyPaths(plan: CellPlan): string[] {
  return readOnly.filter((path) => path !== '/' || !isOverlay(plan))
}

export function stageName(index: number): string {
  return `bind${index}`
}
