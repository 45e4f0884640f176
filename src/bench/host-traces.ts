import { readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { currentOwner, ownerName } from '../sys/owner.js'
import { statePlace } from '../sys/places.js'
import { descendantsOf } from './host-processes.js'

/** Everything that sandboxes of this process have on the host, one line per thing; other engines on the same machine have other names. */
export interface HostTraces {
  readonly processes: readonly string[]
  readonly mounts: readonly string[]
  readonly cgroups: readonly string[]
  /** Ranges of ids that are taken. */
  readonly ids: readonly string[]
  readonly files: readonly string[]
}

export function traceHost(): HostTraces {
  const name = ownerName(currentOwner())
  const state = treeOf(statePlace()).filter((path) => path.includes(name))
  const isRange = (path: string): boolean => path.includes('/ranges/')
  return {
    processes: descendantsOf(process.pid).map(String),
    mounts: linesOf('/proc/self/mountinfo'),
    cgroups: cgroupsOf(name),
    ids: state.filter((path) => isRange(path)),
    files: [...state.filter((path) => !isRange(path)), ...readdirSync(tmpdir()).filter((path) => path.includes(name))],
  }
}

/** What is there now and was not before. */
export function newTraces(before: HostTraces, after: HostTraces): HostTraces {
  const added = (kind: keyof HostTraces): readonly string[] => {
    const known = new Set(before[kind])
    return after[kind].filter((line) => !known.has(line))
  }
  return { processes: added('processes'), mounts: added('mounts'), cgroups: added('cgroups'), ids: added('ids'), files: added('files') }
}

/** Sought where an engine makes them: at this process's own place in each hierarchy, and above it. */
function cgroupsOf(name: string): readonly string[] {
  const mountPoints = linesOf('/proc/self/mountinfo').flatMap((line) => (/ - cgroup2? /.test(line) ? (line.split(' ')[4] ?? []) : []))
  const places = new Set(linesOf('/proc/self/cgroup').flatMap((line) => upwards(line.split(':')[2] ?? '/')))
  const folders = mountPoints.flatMap((mountPoint) => [...places].flatMap((place) => foldersIn(join(mountPoint, place))))
  return [...new Set(folders)].filter((path) => path.includes(name))
}

function upwards(path: string): readonly string[] {
  return path === '/' || path === '' ? ['/'] : [path, ...upwards(dirname(path))]
}

function foldersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [join(folder, entry.name)] : []))
  } catch {
    // Not a place in this hierarchy.
    return []
  }
}

function treeOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name)
      return entry.isDirectory() ? [path, ...treeOf(path)] : [path]
    })
  } catch {
    // Another engine removed it meanwhile.
    return []
  }
}

function linesOf(path: string): readonly string[] {
  return readFileSync(path, 'latin1').split('\n').filter(Boolean)
}
