/** What the kernel says of a cell and its programs, asked from outside: nothing inside is believed, and nothing inside notices. */
import { dirname, join } from 'node:path'
import type { PostureSubject } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { Json, Observation, Posture } from '../contract/posture.js'
import type { CellCgroup } from '../sys/cell-cgroup.js'
import { survivingDescriptors } from '../sys/posture/descriptors.js'
import { threadsIn } from '../sys/posture/group-members.js'
import { createGroupPlaces, type GroupPlaces } from '../sys/posture/group-places.js'
import { type IdMap, parseIdMap } from '../sys/posture/id-map.js'
import { boundsOfDisk } from '../sys/posture/memory-disk.js'
import { type MountEntry, parseMountTable, reachableMounts } from '../sys/posture/mount-table.js'
import { namespaceNames, type Namespaces, readNamespaces } from '../sys/posture/namespaces.js'
import { FilterAhead } from '../sys/posture/filter-ahead.js'
import type { InspectorPipe } from '../sys/posture/filter-pipe.js'
import { pageBytes } from '../sys/posture/page-size.js'
import { isGone, readProc } from '../sys/posture/proc-files.js'
import { observeProcess, ownFilters, placeOf, type ProcessFacts, readFacts, type Surroundings } from '../sys/posture/process-posture.js'
import { limitsReader, type ProcessLimits } from '../sys/posture/process-limits.js'
import { parseStatus } from '../sys/posture/process-status.js'
import { childrenOf, descendantsOf, innerPid } from '../sys/posture/process-tree.js'
import { filterObservation } from './filter-observation.js'
import { findFirstProcess, type FirstProcessOptions } from './first-process.js'
import { hasIpv6, interfacesOf, parseRoutes } from '../sys/posture/routes.js'
import { readSocketCounts, type SocketCounts } from '../sys/posture/socket-counts.js'
import { type GuestsView, observeGuests } from './guests-posture.js'

/** The cgroups of a cell, as far as its posture needs them. */
export type CellGroups = Pick<CellCgroup, 'joins' | 'places' | 'stated' | 'states'>

/** Of a table with a hundred lines. */
const mountTableBytes = 16_384

/** What of this process a cell is held against. None of it changes while it runs, so it is read once. */
export interface OwnPosture {
  readonly namespaces: Namespaces
  readonly filters: number
  /** Of the cgroups that it sees. */
  readonly places: GroupPlaces
  readonly pageBytes: number
  /** Of programs, most of which have the same. */
  readonly limitsOf: (text: string) => ProcessLimits
}

export function readOwnPosture(): OwnPosture {
  return {
    namespaces: readNamespaces('self'),
    filters: parseStatus(readProc('self', 'status')).filters ?? 0,
    places: createGroupPlaces(readProc('self', 'mountinfo', mountTableBytes)),
    pageBytes: pageBytes(),
    limitsOf: limitsReader(),
  }
}

export interface PostureOptions extends FirstProcessOptions {
  readonly own: OwnPosture
  /** The runtime's, whose child the warden is. */
  readonly monitorPid: number
  readonly groups: CellGroups | undefined
  /** To the launcher's process that reads one filter; undefined where there is none. */
  readonly inspector?: InspectorPipe | undefined
}

export interface CellPosture {
  read(subject: PostureSubject): Promise<readonly Posture[]>
  /** A program is about to be started, and the first will be read in full: what takes a process of its own to read is made ready meanwhile. */
  expectProgram(): void
  /** Resolves when nothing that was made ready is left. */
  close(): Promise<void>
}

export function createCellPosture({ own, monitorPid, groups, inspector, isWithin }: PostureOptions): CellPosture {
  const filters = new FilterAhead(inspector)
  let known: Warden | undefined
  let born: SocketCounts | undefined
  const look = async (subject: PostureSubject): Promise<readonly Posture[]> => {
    const found = known === undefined ? findWarden(monitorPid, { isWithin }) : undefined
    known ??= found as Warden
    const view: CellView = { warden: known, groups, own, monitor: monitorPid }
    // Later there are those of programs.
    if (subject.kind === 'cell') return [observeCell(view, found ?? readWarden(known.pid), (born ??= readSocketCounts(known.pid)))]
    return subject.kind === 'program' ? [await observeProgram({ view, subject, filters })] : observeGuests(guestsOf(view))
  }
  return {
    expectProgram: () => {
      // Where the cell was not looked at, its programs will not be either.
      if (known) filters.prepare()
    },
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

interface Warden extends ProcessFacts {
  readonly pid: number
  readonly uidMap: IdMap
  readonly gidMap: IdMap
}

interface CellView {
  /** As it was found first: a number that was given to another process later shows by its namespaces. The kernel lets nobody write a map twice. */
  readonly warden: Warden
  readonly groups: CellGroups | undefined
  readonly own: OwnPosture
  readonly monitor: number
}

type ProgramSubject = Extract<PostureSubject, { kind: 'program' }>

function findWarden(monitorPid: number, options: FirstProcessOptions): Warden {
  const pid = findFirstProcess(monitorPid, options)
  const facts = pid === undefined ? undefined : factsOf(pid, 1)
  if (pid === undefined || facts === undefined) throw new SandboxError('broken', 'the first process of the cell is gone')
  return readWarden(pid, facts)
}

function readWarden(pid: number, facts = readFacts(pid)): Warden {
  return { pid, ...facts, uidMap: parseIdMap(readProc(pid, 'uid_map')), gidMap: parseIdMap(readProc(pid, 'gid_map')) }
}

/** Undefined when it is gone, or has another number in its own pid namespace, or in the one above that. */
function factsOf(pid: number, inner: number, level: -1 | -2 = -1): ProcessFacts | undefined {
  try {
    const status = parseStatus(readProc(pid, 'status'))
    return status.pids.at(level) === inner ? { status, namespaces: readNamespaces(pid) } : undefined
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

function kernel(control: string, value: Json, source: string): Observation {
  return { control, value, evidence: 'kernel', source }
}

function observeCell(view: CellView, now: Warden, born: SocketCounts): Posture {
  const { pid, namespaces } = view.warden
  const own = view.own.namespaces
  if (now.namespaces.pid !== namespaces.pid) throw new SandboxError('broken', 'the first process of the cell is gone')
  const mounts = reachableMounts(parseMountTable(readProc(pid, 'mountinfo', mountTableBytes)))
  const disk = boundsOfDisk(mounts)
  return {
    subject: 'cell',
    observations: [
      kernel('namespaces', Object.fromEntries(namespaceNames.map((name) => [name, now.namespaces[name] === own[name] ? 'host' : 'own'])), '/proc/1/ns'),
      kernel('uid-map', now.uidMap, '/proc/1/uid_map'),
      kernel('gid-map', now.gidMap, '/proc/1/gid_map'),
      kernel('interfaces', interfacesOf(readProc(pid, 'net/dev')), '/proc/1/net/dev'),
      kernel('routes', routesOf(pid), '/proc/1/net'),
      kernel('sockets', { ...born }, '/proc/1/net/sockstat, before anything ran'),
      kernel('mounts', mounts.map(mountRow), '/proc/1/mountinfo'),
      kernel('limit.disk', disk.bytes, '/proc/1/mountinfo'),
      kernel('limit.inodes', disk.inodes, '/proc/1/mountinfo'),
      kernel('warden', observeWarden(view, now), '/proc/1/status'),
      ...observeCradle(view),
      ...statedLimits(view.groups),
    ],
  }
}

function routesOf(pid: number): string[] {
  return parseRoutes(readProc(pid, 'net/route'), hasIpv6() ? readProc(pid, 'net/ipv6_route') : '')
}

export function mountRow({ target, type, access, nosuid, nodev, noexec }: MountEntry): Json {
  return { target, type, access, nosuid, nodev, noexec }
}

function observeWarden({ groups, own }: CellView, { pid, status }: Warden): Json {
  return {
    capabilities: { ...status.capabilities },
    noNewPrivs: status.noNewPrivs,
    seccomp: status.seccomp,
    filters: ownFilters(status, own.filters),
    cgroup: groups === undefined ? 'none' : (wardenOutside(pid, groups, own.places) ?? 'cell'),
  }
}

/** Whoever makes liners; none where there are none. */
function observeCradle({ warden, own }: CellView): Observation[] {
  return childrenOf(warden.pid).flatMap((pid) => {
    // Of one that ends meanwhile nothing is told.
    const inner = innerPid(pid)
    const facts = inner === undefined ? undefined : factsOf(pid, inner)
    if (!facts || placeOf(facts.namespaces, warden.namespaces) !== 'cradle') return []
    const { status } = facts
    const { capabilities, noNewPrivs, seccomp } = status
    return [kernel('cradle', { capabilities: { ...capabilities }, noNewPrivs, seccomp, filters: ownFilters(status, own.filters) }, '/proc/PID/status')]
  })
}

/** In version 2 it enters by the cell's own group and is moved on to one below. */
function wardenOutside(pid: number, { joins }: CellGroups, places: GroupPlaces): string | undefined {
  const isIn = places.membershipOf(pid)
  const missed = joins.map((door) => dirname(door)).find((folder) => !isIn(folder) && !isIn(join(folder, 'warden')))
  return missed && `not in ${missed}`
}

function statedLimits(groups: CellGroups | undefined): Observation[] {
  if (groups === undefined) return []
  const { memoryBytes: memory, cpus, processes, readBytesPerSecond: readRate, writeBytesPerSecond: writeRate } = groups.stated()
  const stated = { memory, cpus, processes, readRate, writeRate }
  return Object.entries(stated).flatMap(([name, value]) => (groups.states?.has(name) === false ? [] : [kernel(`limit.${name}`, value ?? null, 'cgroup')]))
}

function surroundingsOf({ warden, own }: CellView): Omit<Surroundings, 'cgroupOf'> {
  const { namespaces, uidMap, gidMap } = warden
  return { namespaces, uidMap, gidMap, inheritedFilters: own.filters, limitsOf: own.limitsOf }
}

function guestsOf(view: CellView): GuestsView {
  const { warden, groups, monitor } = view
  const places = { first: warden.pid, monitor, pidNamespace: warden.namespaces.pid, folders: groups?.places(undefined) }
  return { places, surroundings: surroundingsOf(view) }
}

interface ProgramLook {
  readonly view: CellView
  readonly subject: ProgramSubject
  readonly filters: FilterAhead
}

async function observeProgram({ view, subject: { pid, depth, group, liner }, filters }: ProgramLook): Promise<Posture> {
  const folders = view.groups?.places(group)
  const { hostPid, facts } = findProgram(view.warden, {
    pid,
    isLined: liner === true,
    folder: group === undefined ? undefined : folders?.find((each) => each.endsWith(`/${group}`)),
  })
  // Another process reads it, so it is asked before the rest is read here.
  const filter = depth === 'full' ? filters.read(hostPid) : undefined
  const cgroupOf = (id: number): string => (folders === undefined ? 'none' : programPlace(view.own.places.missedBy(id, folders)))
  const short = observeProcess(hostPid, { ...surroundingsOf(view), cgroupOf }, facts)
  const full = filter ? [...(liner ? observeLiner(hostPid) : []), observeDescriptors(hostPid), filterObservation(await filter, short)] : []
  return { subject: `pid ${pid}`, observations: [...short, ...full] }
}

function programPlace(missed: string | undefined): string {
  return missed === undefined ? 'run' : `not in ${missed}`
}

/** What is its own rather than its program's, as of a cell. */
function observeLiner(pid: number): Observation[] {
  const mounts = reachableMounts(parseMountTable(readProc(pid, 'mountinfo', mountTableBytes)))
  const disk = boundsOfDisk(mounts)
  return [
    kernel('interfaces', interfacesOf(readProc(pid, 'net/dev')), '/proc/PID/net/dev'),
    kernel('routes', routesOf(pid), '/proc/PID/net'),
    kernel('sockets', { ...readSocketCounts(pid) }, '/proc/PID/net/sockstat'),
    kernel('mounts', mounts.map(mountRow), '/proc/PID/mountinfo'),
    kernel('limit.disk', disk.bytes, '/proc/PID/mountinfo'),
    kernel('limit.inodes', disk.inodes, '/proc/PID/mountinfo'),
  ]
}

interface Sought {
  /** As the cell sees it. */
  readonly pid: number
  /** It has another number in its own pid namespace. */
  readonly isLined: boolean
  /** Of its run alone. */
  readonly folder: string | undefined
}

/** No two processes of one pid namespace have the same number, wherever it is found. */
function findProgram({ pid: warden, namespaces }: Warden, { pid, isLined, folder }: Sought): { readonly hostPid: number; readonly facts: ProcessFacts } {
  for (const hostPid of candidates(warden, folder)) {
    const facts = factsOf(hostPid, pid, isLined ? -2 : -1)
    if (facts && (facts.namespaces.pid !== namespaces.pid) === isLined) return { hostPid, facts }
  }
  throw new SandboxError('broken', `the program with pid ${pid} is gone`)
}

/** A program at its gate should be alone in its run's group, and is the only child of its keeper; the newest keepers are looked at first. */
function* candidates(warden: number, folder: string | undefined): Generator<number> {
  if (folder !== undefined) yield* threadsIn(folder)
  for (const keeper of childrenOf(warden).reverse()) yield* childrenOf(keeper)
  yield* descendantsOf(warden)
}

function observeDescriptors(pid: number): Observation {
  try {
    return kernel('descriptors', survivingDescriptors(pid), '/proc/PID/fdinfo')
  } catch (error) {
    if (isGone(error)) throw error
    return { control: 'descriptors', value: null, evidence: 'asserted', source: `/proc/PID/fdinfo: ${(error as Error).message}` }
  }
}
