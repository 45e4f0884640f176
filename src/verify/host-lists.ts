import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { HostProcess } from '../conformance/index.js'

export interface HostViewOptions {
  /** Folders of which this process is the only user: all that is in them counts. */
  readonly ownFolders: readonly string[]
  /** Folders shared with other engines: what bears this process's id in its path counts. */
  readonly sharedFolders: readonly string[]
  /** Mounts that come and go by others' doing, by where they are; none when not given. */
  readonly isOthers?: (mountPoint: string) => boolean
}

/** Container engines, users' sessions and tests mount at any moment. */
const mountedByOthers = /\/(docker|containerd|containers|buildkit|netns|gbx-[^/]+)\/|^\/run\/user\//

/** Whether what is mounted there comes and goes by itself. */
export function isMountOfOthers(mountPoint: string): boolean {
  return mountedByOthers.test(`${mountPoint}/`)
}

/** State, records and temporary files of this process. */
export function takeFiles({ ownFolders, sharedFolders }: HostViewOptions): string[] {
  return [...ownFolders.flatMap((folder) => listTree(folder)), ...sharedFolders.flatMap((folder) => listTree(folder).filter((path) => bearsName(path)))].sort()
}

/** Every mount that this process sees, one line each. */
export function listMounts({ isOthers = () => false }: Pick<HostViewOptions, 'isOthers'>): string[] {
  return lines('/proc/self/mountinfo').filter((line) => !isOthers(line.split(' ')[4] ?? ''))
}

function bearsName(path: string): boolean {
  return new RegExp(`(?<![0-9])${process.pid}(?![0-9])`).test(path)
}

interface ProcessEntry extends Omit<HostProcess, 'ofEngine'> {
  readonly parent: number
  readonly state: string
}

export function listProcesses(canaryPid?: number): HostProcess[] {
  const entries = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readProcess(Number(name)) ?? [])
    // A zombie holds nothing, and its parent is about to read it.
    .filter(({ state, pid }) => state !== 'Z' && state !== 'X' && pid !== canaryPid)
  const parents = new Map(entries.map(({ pid, parent }) => [pid, parent]))
  return entries.map(({ pid, command }) => ({ pid, command, ofEngine: descends(pid, parents) }))
}

function readProcess(pid: number): ProcessEntry | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const name = stat.slice(stat.indexOf('('), stat.lastIndexOf(')') + 1)
    const [state = '', parent = '0'] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').trim() || name
    return { pid, command, parent: Number(parent), state }
  } catch {
    return undefined
  }
}

function descends(pid: number, parents: ReadonlyMap<number, number>): boolean {
  let at = parents.get(pid)
  while (at !== undefined && at > 1) {
    if (at === process.pid) return true
    at = parents.get(at)
  }
  return false
}

/** Those that bear our name, sought where an engine makes them: at this process's own place in each hierarchy and above it. */
export function listCgroups(): string[] {
  const mountPoints = lines('/proc/self/mountinfo').flatMap((line) => (/ - cgroup2? /.test(line) ? (line.split(' ')[4] ?? []) : []))
  const places = new Set(lines('/proc/self/cgroup').flatMap((line) => upwards(line.split(':')[2] ?? '/')))
  const groups = mountPoints.flatMap((mountPoint) => [...places].flatMap((place) => listFolders(join(mountPoint, place))))
  return groups.filter((path) => /\/glovebox\./.test(path) && bearsName(path)).flatMap((path) => [path, ...listFolders(path)])
}

function upwards(path: string): string[] {
  return path === '/' || path === '' ? ['/'] : [path, ...upwards(dirname(path))]
}

function listFolders(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [join(folder, entry.name)] : []))
  } catch {
    return []
  }
}

export function lines(path: string): string[] {
  return readFileSync(path, 'latin1').split('\n').filter(Boolean)
}

function listTree(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name)
      return entry.isDirectory() ? [path, ...listTree(path)] : [path]
    })
  } catch {
    return []
  }
}

export function listDescriptors(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`)
      return target.startsWith('/proc/') && target.endsWith('/fd') ? [] : [`${fd} ${target}`]
    } catch {
      return []
    }
  })
}
