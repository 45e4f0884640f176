import type { CellSpec, GuestUser } from '../../contract/driver.js'
import { type Capability, capabilityMask, rootCapabilities, singleIdWardenCapabilities, wardenCapabilities } from './capabilities.js'

/** Whose ids a cell has: a range of the host's for itself, or only the one of whoever started it. */
export type CellIds = { readonly kind: 'range'; readonly base: number; readonly size: number } | { readonly kind: 'single' }

export interface CellPrograms {
  readonly launcher: string
  readonly bwrap: string
  readonly warden: string
}

export interface CellCgroups {
  /** Files through which the cell's first process enters its cgroups, before anything else. */
  readonly joins: readonly string[]
  /** Files through which each guest program enters its own. */
  readonly guestJoins: readonly string[]
}

export interface CellPlan {
  readonly spec: CellSpec
  readonly ids: CellIds
  readonly programs: CellPrograms
  /** The process whose death ends the cell. */
  readonly ownerPid: number
  readonly cgroups?: CellCgroups
  /** Folders of the host whose inodes the cell shares, because the kernel would not veil them. */
  readonly unveilable?: ReadonlySet<string>
}

export const workdir = '/workspace'
const userId = 1000
const wardenId = 65_532

/** Where bwrap binds the warden; what stays there after the warden let go of it is an empty file that tells a guest where it is. */
const wardenPath = '/.glovebox'
/** Marks bwrap's own processes of a cell on the host, so that a later engine finds those a killed one left. */
export const cellVariable = 'GLOVEBOX_CELL'

const infoFd = 3
const blockFd = 4
const firstJoinFd = 10

const devices = ['null', 'zero', 'full', 'random', 'urandom', 'tty']
const hostDevices = devices.map((name) => `/dev/${name}`)
const deviceLinks: readonly (readonly [string, string])[] = [
  ['/proc/self/fd', '/dev/fd'],
  ['/proc/self/fd/0', '/dev/stdin'],
  ['/proc/self/fd/1', '/dev/stdout'],
  ['/proc/self/fd/2', '/dev/stderr'],
  ['pts/ptmx', '/dev/ptmx'],
]

/** What /proc tells of the machine rather than of the cell. */
const masked = [
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
const readOnly = ['/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger', '/dev', '/']

/** The one command that builds a cell: launcher, bwrap and warden, each with its arguments. */
export function cellArgv(plan: CellPlan): [string, ...string[]] {
  const { programs } = plan
  return [programs.launcher, ...launcherArguments(plan), '--', programs.bwrap, ...bwrapArguments(plan), '--', wardenPath, ...wardenArguments(plan)]
}

/** The users that a run in such a cell may have. */
export function guestUsers(ids: CellIds): GuestUser[] {
  const user: GuestUser = { name: 'user', uid: userId, gid: userId, home: '/home/user', capabilities: 0n }
  if (ids.kind === 'single') return [user]
  return [user, { name: 'root', uid: 0, gid: 0, home: '/root', capabilities: capabilityMask(rootCapabilities) }]
}

function launcherArguments({ spec, ids, ownerPid, programs, cgroups, unveilable }: CellPlan): string[] {
  const joins = (cgroups?.joins ?? []).flatMap((path) => ['--join', path])
  const opens = (cgroups?.guestJoins ?? []).flatMap((path, index) => ['--open', `${firstJoinFd + index}`, path])
  const common = ['--parent', `${ownerPid}`, ...joins, ...opens]
  if (ids.kind === 'single') return common
  return [
    ...common,
    ...spec.root.binds.flatMap(({ source }, index) => [unveilable?.has(source) ? '--stage' : '--veil', stageName(index), source]),
    ...['--stage', 'warden', programs.warden],
    '--devices',
    ...['--map', `${ids.base}`, `${ids.size}`, `${infoFd}`, `${blockFd}`],
    ...['--drop', `${ids.base + wardenId}`],
  ]
}

function bwrapArguments({ spec, ids, programs }: CellPlan): string[] {
  const isSingle = ids.kind === 'single'
  const sources = spec.root.binds.map(({ source }, index) => (isSingle ? source : `/tmp/${stageName(index)}`))
  return [
    ...['--unshare-all', '--unshare-user', '--as-pid-1', '--die-with-parent', '--hostname', 'glovebox'],
    ...['--clearenv', '--setenv', cellVariable, spec.id],
    ...(isSingle ? ['--uid', `${userId}`, '--gid', `${userId}`] : ['--info-fd', `${infoFd}`, '--userns-block-fd', `${blockFd}`]),
    ...['--cap-drop', 'ALL', ...(isSingle ? singleIdWardenCapabilities : wardenCapabilities).flatMap(addCapability)],
    ...spec.root.binds.flatMap(({ target }, index) => ['--ro-bind', sources[index] as string, target]),
    ...spec.root.symlinks.flatMap(({ path, target }) => ['--symlink', target, path]),
    ...['--proc', '/proc'],
    ...(isSingle ? ownDevices() : ['--dev-bind', '/tmp/dev', '/dev']),
    ...writableFolders(ids).flatMap(({ path }) => (path.startsWith('/dev/') ? [] : ['--dir', path])),
    ...['--dir', '/run', '--symlink', '/run', '/var/run'],
    ...['--ro-bind', isSingle ? programs.warden : '/tmp/warden', wardenPath],
  ]
}

function addCapability(name: Capability): string[] {
  return ['--cap-add', `CAP_${name}`]
}

/** Not bwrap's own `--dev`: it would put the cell into a second user namespace, where the warden could not mount. */
function ownDevices(): string[] {
  return [
    ...['--tmpfs', '/dev'],
    ...hostDevices.flatMap((path) => ['--dev-bind', path, path]),
    ...deviceLinks.flatMap(([target, path]) => ['--symlink', target, path]),
    ...['--dir', '/dev/pts', '--dir', '/dev/shm'],
  ]
}

function wardenArguments(plan: CellPlan): string[] {
  const { spec, ids, cgroups } = plan
  const isSingle = ids.kind === 'single'
  return [
    ...(isSingle ? veiledInside(plan) : []).flatMap((path) => ['--veil', path]),
    ...['--disk', `${spec.limits.diskBytes}`, `${spec.limits.inodes}`],
    ...writableFolders(ids).flatMap(({ path, owner, mode }) => ['--writable', path, `${owner}`, `${owner}`, mode]),
    '--pts',
    ...masked.flatMap((path) => ['--mask', path]),
    ...[...(isSingle ? hostDevices : []), ...readOnly].flatMap((path) => ['--readonly', path]),
    ...['--detach', wardenPath],
    ...(cgroups?.guestJoins ?? []).flatMap((_, index) => ['--join', `${firstJoinFd + index}`]),
  ]
}

/** The kernel refuses to veil a folder with mounts of the host's below it, which are bound one by one: those stay as they are. */
function veiledInside({ spec, unveilable }: CellPlan): string[] {
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

function writableFolders(ids: CellIds): WritableFolder[] {
  const root = ids.kind === 'single' ? userId : 0
  return [
    { path: workdir, owner: userId, mode: '0755' },
    { path: '/home/user', owner: userId, mode: '0755' },
    { path: '/tmp', owner: root, mode: '1777' },
    { path: '/var/tmp', owner: root, mode: '1777' },
    { path: '/dev/shm', owner: root, mode: '1777' },
    ...(ids.kind === 'single' ? [] : [{ path: '/root', owner: 0, mode: '0700' }]),
  ]
}

function stageName(index: number): string {
  return `bind${index}`
}
