import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The disks behind some folders, as the kernel's throttles want them named. */
export interface BlockDevices {
  /** `254:0`, each once. */
  readonly devices: readonly string[]
  /** Folders whose disk cannot be told, with the kind of file system. */
  readonly without: readonly { readonly path: string; readonly type: string }[]
  /** File systems whose writes from memory to disk are not counted for whoever wrote. */
  readonly unattributed: readonly { readonly path: string; readonly type: string }[]
}

export interface BlockDeviceFacts {
  readonly mountinfo?: string
  /** Where sysfs tells of devices. */
  readonly sysDevBlock?: string
}

/** Nothing of these is ever on a disk. */
const inMemory = [
  'tmpfs',
  'ramfs',
  'proc',
  'sysfs',
  'devtmpfs',
  'devpts',
  'cgroup',
  'cgroup2',
  'mqueue',
  'securityfs',
  'debugfs',
  'tracefs',
  'bpf',
  'hugetlbfs',
]
/** From the kernel's list of file systems with cgroup writeback. */
const attributed = ['ext2', 'ext4', 'btrfs', 'f2fs', 'xfs']

/** Of the file systems that hold these folders, and of those mounted below them. */
export function findBlockDevices(paths: readonly string[], facts: BlockDeviceFacts = {}): BlockDevices {
  const mounts = (facts.mountinfo ?? readFileSync('/proc/self/mountinfo', 'utf8')).split('\n').flatMap(parseMount)
  const found = paths.flatMap((path) => mountsOf(path, mounts).map((mount) => ({ path, mount, device: diskOf(mount, facts.sysDevBlock ?? '/sys/dev/block') })))
  const onDisk = found.filter(({ mount }) => !inMemory.includes(mount.type))
  const named = (list: typeof onDisk) => list.map(({ path, mount }) => ({ path, type: mount.type }))
  return {
    devices: [...new Set(onDisk.flatMap(({ device }) => device ?? []))],
    without: named(onDisk.filter(({ device }) => device === undefined)),
    unattributed: named(onDisk.filter(({ mount }) => !attributed.includes(mount.type))),
  }
}

interface Mount {
  readonly point: string
  readonly device: string
  readonly type: string
}

/** `36 35 98:0 ROOT POINT options [tags]… - TYPE SOURCE SUPER_OPTIONS` */
function parseMount(line: string): Mount[] {
  const [before = '', after = ''] = line.split(' - ')
  const [, , device, , point] = before.split(' ')
  const [type] = after.split(' ')
  return device === undefined || point === undefined || type === undefined ? [] : [{ point: unescape(point), device, type }]
}

function unescape(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}

/** The last of equal length covers those before it. */
function mountsOf(path: string, mounts: readonly Mount[]): Mount[] {
  const above = mounts.filter(({ point }) => path === point || path.startsWith(point === '/' ? '/' : `${point}/`))
  const [own] = above.toReversed().toSorted((one, other) => other.point.length - one.point.length)
  return [...(own ? [own] : []), ...mounts.filter(({ point }) => point.startsWith(`${path}/`))]
}

/** A partition is throttled by its disk. Major 0 is a number that the kernel made up for a file system without a device. */
function diskOf({ device }: Mount, sysDevBlock: string): string | undefined {
  if (device.startsWith('0:') || !existsSync(join(sysDevBlock, device))) return undefined
  const folder = realpathSync(join(sysDevBlock, device))
  return existsSync(join(folder, 'partition')) ? readFileSync(join(dirname(folder), 'dev'), 'utf8').trim() : device
}
