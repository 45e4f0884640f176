/** What the kernel says of a cell and its programs, asked from outside: nothing inside is believed, and nothing inside notices. */
import { dirname, join } from 'node:path'
import type { PostureSubject } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import type { Json, Observation, Posture } from '../../contract/posture.js'
import type { CellCgroup } from '../../sys/cell-cgroup.js'
import { survivingDescriptors } from '../../sys/posture/descriptors.js'
import { threadsIn } from '../../sys/posture/group-members.js'
import { parseIdMap } from '../../sys/posture/id-map.js'
import { boundsOfDisk } from '../../sys/posture/memory-disk.js'
import { type MountEntry, parseMountTable, reachableMounts } from '../../sys/posture/mount-table.js'
import { namespaceNames, type Namespaces, readNamespaces } from '../../sys/posture/namespaces.js'
import { FilterAhead } from '../../sys/posture/filter-ahead.js'
import type { FilterReading } from '../../sys/posture/newest-filter.js'
import { isGone, readProc } from '../../sys/posture/proc-files.js'
import { observeProcess, ownFilters, type Surroundings } from '../../sys/posture/process-posture.js'
import { parseStatus } from '../../sys/posture/process-status.js'
import { childrenOf, descendantsOf, innerPid } from '../../sys/posture/process-tree.js'
import { type GuestsView, observeGuests } from './guests-posture.js'

/** The cgroups of a cell, as far as its posture needs them. */
export type CellGroups = Pick<CellCgroup, 'joins' | 'places' | 'stated'>

export interface PostureOptions {
  /** bwrap's monitor, whose child the warden is. */
  readonly monitorPid: number
  readonly groups: CellGroups | undefined
}

export interface CellPosture {
  read(subject: PostureSubject): Promise<readonly Posture[]>
  /** A program is about to be started, and the first will be read in full: what takes a process of its own to read is made ready meanwhile. */
  expectProgram(): void
  /** Resolves when nothing that was made ready is left. */
  close(): Promise<void>
}

export function createCellPosture({ monitorPid, groups }: PostureOptions): CellPosture {
  const own = { namespaces: readNamespaces('self'), filters: parseStatus(readProc('self', 'status')).filters ?? 0 }
  const filters = new FilterAhead()
  let known: Warden | undefined
  const look = async (subject: PostureSubject): Promise<readonly Posture[]> => {
    const found = known === undefined ? findWarden(monitorPid) : undefined
    known ??= found as Warden
    const view: CellView = { warden: known, groups, own }
    if (subject.kind === 'cell') return [observeCell(view, found?.namespaces ?? readNamespaces(known.pid))]
    return subject.kind === 'program' ? [await observeProgram({ view, subject, filters })] : observeGuests(guestsOf(view))
  }
  return {
    expectProgram: () => filters.prepare(),
    close: () => filters.close(),
    read: async (subject) => {
      try {
        return await look(subject)
      } catch (error) {
        if (isGone(error)) throw new SandboxError('broken', 'what its posture was asked of is gone', { cause: error })
        throw error
      }
    },
  }
}

interface Warden {
  readonly pid: number
  /** As they were found first: a number that was given to another process later shows by them. */
  readonly namespaces: Namespaces
}

interface CellView {
  readonly warden: Warden
  readonly groups: CellGroups | undefined
  /** Of this process. */
  readonly own: { readonly namespaces: Namespaces; readonly filters: number }
}

type ProgramSubject = Extract<PostureSubject, { kind: 'program' }>

function findWarden(monitorPid: number): Warden {
  const pid = childrenOf(monitorPid).find((child) => innerPid(child) === 1)
  if (pid === undefined) throw new SandboxError('broken', 'the first process of the cell is gone')
  return { pid, namespaces: readNamespaces(pid) }
}

function kernel(control: string, value: Json, source: string): Observation {
  return { control, value, evidence: 'kernel', source }
}

function observeCell(view: CellView, now: Namespaces): Posture {
  const { pid, namespaces } = view.warden
  const own = view.own.namespaces
  if (now.pid !== namespaces.pid) throw new SandboxError('broken', 'the first process of the cell is gone')
  const mounts = reachableMounts(parseMountTable(readProc(pid, 'mountinfo')))
  const disk = boundsOfDisk(mounts)
  return {
    subject: 'cell',
    observations: [
      kernel('namespaces', Object.fromEntries(namespaceNames.map((name) => [name, now[name] === own[name] ? 'host' : 'own'])), '/proc/1/ns'),
      kernel('uid-map', parseIdMap(readProc(pid, 'uid_map')), '/proc/1/uid_map'),
      kernel('gid-map', parseIdMap(readProc(pid, 'gid_map')), '/proc/1/gid_map'),
      kernel('interfaces', interfacesOf(readProc(pid, 'net/dev')), '/proc/1/net/dev'),
      kernel('mounts', mounts.map(mountRow), '/proc/1/mountinfo'),
      kernel('limit.disk', disk.bytes, '/proc/1/mountinfo'),
      kernel('limit.inodes', disk.inodes, '/proc/1/mountinfo'),
      kernel('warden', observeWarden(view), '/proc/1/status'),
      ...statedLimits(view.groups),
    ],
  }
}

/** Two lines of headings, then `NAME: numbers`. */
function interfacesOf(table: string): string[] {
  const names = table.split('\n').flatMap((line) => /^\s*([^\s:|]+):/.exec(line)?.[1] ?? [])
  return names.sort()
}

function mountRow({ target, type, access, nosuid, nodev, noexec }: MountEntry): Json {
  return { target, type, access, nosuid, nodev, noexec }
}

function observeWarden({ warden, groups, own }: CellView): Json {
  const status = parseStatus(readProc(warden.pid, 'status'))
  const folders = groups?.joins.map((door) => dirname(door))
  return {
    capabilities: { ...status.capabilities },
    noNewPrivs: status.noNewPrivs,
    seccomp: status.seccomp,
    filters: ownFilters(status, own.filters),
    cgroup: folders === undefined ? 'none' : (outside(folders, (folder) => isWardens(folder, warden.pid)) ?? 'cell'),
  }
}

/** In version 2 it enters by the cell's own group and is moved on to one below. */
function isWardens(folder: string, pid: number): boolean {
  return threadsIn(folder).has(pid) || threadsIn(join(folder, 'warden')).has(pid)
}

/** The first group that it is not in. */
function outside(folders: readonly string[], isInside: (folder: string) => boolean): string | undefined {
  const missed = folders.find((folder) => !isInside(folder))
  return missed && `not in ${missed}`
}

function statedLimits(groups: CellGroups | undefined): Observation[] {
  if (groups === undefined) return []
  const { memoryBytes, cpus, processes, readBytesPerSecond, writeBytesPerSecond } = groups.stated()
  const stated = { memory: memoryBytes, cpus, processes, readRate: readBytesPerSecond, writeRate: writeBytesPerSecond }
  return Object.entries(stated).map(([name, value]) => kernel(`limit.${name}`, value ?? null, 'cgroup'))
}

function surroundingsOf({ warden, own }: CellView): Omit<Surroundings, 'cgroupOf'> {
  const { pid, namespaces } = warden
  return { namespaces, uidMap: parseIdMap(readProc(pid, 'uid_map')), gidMap: parseIdMap(readProc(pid, 'gid_map')), inheritedFilters: own.filters }
}

function guestsOf(view: CellView): GuestsView {
  const { warden, groups } = view
  return { places: { first: warden.pid, pidNamespace: warden.namespaces.pid, folders: groups?.places(undefined) }, surroundings: surroundingsOf(view) }
}

interface ProgramLook {
  readonly view: CellView
  readonly subject: ProgramSubject
  readonly filters: FilterAhead
}

async function observeProgram({ view, subject: { pid, depth, group }, filters }: ProgramLook): Promise<Posture> {
  const hostPid = findProgram(view.warden, pid)
  if (hostPid === undefined) throw new SandboxError('broken', `the program with pid ${pid} is gone`)
  // Another process reads it, so it is asked before the rest is read here.
  const filter = depth === 'full' ? filters.read(hostPid) : undefined
  const folders = view.groups?.places(group)
  const cgroupOf = (id: number): string => (folders === undefined ? 'none' : (outside(folders, (folder) => threadsIn(folder).has(id)) ?? 'run'))
  const short = observeProcess(hostPid, { ...surroundingsOf(view), cgroupOf })
  const full = filter ? [observeDescriptors(hostPid), filterObservation(await filter, short)] : []
  return { subject: `pid ${pid}`, observations: [...short, ...full] }
}

/** A program at its gate is the only child of its keeper; the newest keepers are looked at first. */
function findProgram({ pid: warden, namespaces }: Warden, pid: number): number | undefined {
  const isIt = (candidate: number): boolean => innerPid(candidate) === pid && readNamespaces(candidate).pid === namespaces.pid
  for (const keeper of childrenOf(warden).reverse()) {
    const found = childrenOf(keeper).find(isIt)
    if (found !== undefined) return found
  }
  return descendantsOf(warden).find(isIt)
}

function observeDescriptors(pid: number): Observation {
  try {
    return kernel('descriptors', survivingDescriptors(pid), '/proc/PID/fdinfo')
  } catch (error) {
    if (isGone(error)) throw error
    return { control: 'descriptors', value: null, evidence: 'asserted', source: `/proc/PID/fdinfo: ${(error as Error).message}` }
  }
}

function filterObservation(reading: FilterReading, observations: readonly Observation[]): Observation {
  if ('unreadable' in reading) return { control: 'filter', value: null, evidence: 'asserted', source: reading.unreadable }
  const isFiltered = (observations.find(({ control }) => control === 'seccomp')?.value as { mode: number }).mode === 2
  if (reading.hash === null && isFiltered) return { control: 'filter', value: null, evidence: 'asserted', source: 'this kernel shows no filters' }
  return kernel('filter', reading.hash, 'PTRACE_SECCOMP_GET_FILTER')
}
