import { join, resolve } from 'node:path'

/** Where cgroups are mounted, told from /proc/self/mountinfo and /proc/self/cgroup. */

export type Controller = 'memory' | 'cpu' | 'pids' | 'cpuacct' | 'blkio' | 'io' | 'freezer'
/** What version 1 may bind to a hierarchy; `io` is the name of `blkio` in version 2. */
const controllers: readonly Controller[] = ['memory', 'cpu', 'pids', 'cpuacct', 'blkio', 'freezer']

export interface CgroupMount {
  readonly version: 1 | 2
  readonly mountPoint: string
  /** Version 1: what is bound to this hierarchy. Version 2 says it in each folder's `cgroup.controllers`. */
  readonly controllers: readonly Controller[]
  /** The folder of this process's own cgroup. */
  readonly own: string
}

export interface CgroupTexts {
  readonly mountinfo: string
  readonly cgroup: string
}

export function parseCgroupMounts({ mountinfo, cgroup }: CgroupTexts): CgroupMount[] {
  const memberships = parseMemberships(cgroup)
  // A hierarchy may be mounted more than once; the first place serves.
  const free = new Set(controllers)
  return mountinfo.split('\n').flatMap((line) => {
    const mount = parseMount(line)
    if (mount === undefined) return []
    const bound = mount.type === 'cgroup' ? mount.options.filter((name): name is Controller => free.delete(name as Controller)) : []
    if (mount.type === 'cgroup' && bound.length === 0) return []
    const path = memberships.get(mount.type === 'cgroup2' ? '' : (bound[0] as string)) ?? '/'
    return [{ version: mount.type === 'cgroup2' ? 2 : 1, mountPoint: mount.point, controllers: bound, own: ownFolder(mount, path) } satisfies CgroupMount]
  })
}

/** Of every hierarchy that is mounted, with or without a controller of ours. */
export function parseHierarchies(mountinfo: string): { readonly version: 1 | 2; readonly mountPoint: string; readonly options: readonly string[] }[] {
  return mountinfo.split('\n').flatMap((line) => {
    const mount = parseMount(line)
    return mount === undefined ? [] : [{ version: mount.type === 'cgroup2' ? 2 : 1, mountPoint: mount.point, options: mount.options } as const]
  })
}

interface Mount {
  readonly root: string
  readonly point: string
  readonly type: 'cgroup' | 'cgroup2'
  readonly options: readonly string[]
}

/** `36 35 98:0 ROOT POINT options [tags]… - TYPE SOURCE SUPER_OPTIONS` */
function parseMount(line: string): Mount | undefined {
  const [before = '', after = ''] = line.split(' - ')
  const [, , , root, point] = before.split(' ')
  const [type, , options = ''] = after.split(' ')
  if (root === undefined || point === undefined || (type !== 'cgroup' && type !== 'cgroup2')) return undefined
  return { root: unescape(root), point: unescape(point), type, options: options.split(',') }
}

/** The kernel writes blanks and backslashes of a path as three octal digits. */
function unescape(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}

/** Controller → path; the empty name is version 2. */
export function parseMemberships(text: string): Map<string, string> {
  const memberships = new Map<string, string>()
  for (const line of text.split('\n')) {
    const match = /^\d+:([^:]*):(.*)$/.exec(line)
    if (match) for (const name of (match[1] as string).split(',')) memberships.set(name, match[2] as string)
  }
  return memberships
}

/** A mount may show only a part of the hierarchy; a path outside of that part cannot be reached through it. */
function ownFolder(mount: Mount, path: string): string {
  if (path.includes('/..')) return mount.point
  if (mount.root === '/') return resolve(join(mount.point, path))
  const isInside = path === mount.root || path.startsWith(`${mount.root}/`)
  return isInside ? resolve(join(mount.point, path.slice(mount.root.length))) : mount.point
}
