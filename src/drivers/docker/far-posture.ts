/** What holds around a cell on another machine, held against the same demands as any other. */
import { type CellInspection, demandsOf, type InspectionOrder } from '../../cell/cell-inspection.js'
import { mountRow } from '../../cell/cell-posture.js'
import type { PostureSubject } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import type { Json, Observation, Posture } from '../../contract/posture.js'
import { type IdMap, parseIdMap } from '../../sys/posture/id-map.js'
import { boundsOfDisk } from '../../sys/posture/memory-disk.js'
import { parseMountTable, reachableMounts } from '../../sys/posture/mount-table.js'
import { namespaceNames, type Namespaces } from '../../sys/posture/namespaces.js'
import { isGone } from '../../sys/posture/proc-files.js'
import { ownFilters, placeOf, type ProcessFacts, type Surroundings } from '../../sys/posture/process-posture.js'
import { parseLimits } from '../../sys/posture/process-limits.js'
import { interfacesOf, parseRoutes } from '../../sys/posture/routes.js'
import { parseSocketCounts } from '../../sys/posture/socket-counts.js'
import { observeFarGuests } from './far-guests.js'
import { asTold, factsOf, observeFarDescriptors, observeFarProcess, pidsOf, whileThere } from './far-process.js'
import type { FarGround } from './far-ground.js'
import type { Teller } from './teller.js'

type ProgramSubject = Extract<PostureSubject, { kind: 'program' }>

export interface FarWarden extends ProcessFacts {
  readonly pid: number
  readonly uidMap: IdMap
  readonly gidMap: IdMap
  /** Names the file that it executes. */
  readonly file: string | undefined
}

export interface FarView {
  readonly teller: Teller
  readonly warden: FarWarden
  readonly surroundings: Surroundings
}

export function inspectFar(order: InspectionOrder, ground: FarGround): CellInspection {
  const { teller, holds, own } = ground
  const demands = demandsOf({ ...order, host: ground.host }, { holds, hasGroups: false, countsFilters: own.filters !== null })
  let known: Promise<FarView> | undefined
  let born: Observation | undefined
  const look = async (subject: PostureSubject): Promise<readonly Posture[]> => {
    known ??= findWarden(teller).then((warden) => ({ teller, warden, surroundings: surroundingsOf(warden, ground) }))
    const view = await known
    if (subject.kind === 'cell') {
      const { observations } = await observeCell(view, ground)
      // Later there are those of programs.
      born ??= observations.find(({ control }) => control === 'sockets')
      return [{ subject: 'cell', observations: observations.map((each) => (each.control === 'sockets' && born ? born : each)) }]
    }
    return subject.kind === 'program' ? [await observeProgram(view, subject)] : observeFarGuests(view)
  }
  return {
    ...demands,
    posture: async (subject) => {
      try {
        return (await look(subject)).map(asTold)
      } catch (error) {
        if (isGone(error)) throw new SandboxError('broken', 'what its posture was asked of is gone', { cause: error })
        throw error
      }
    },
    expectProgram: () => undefined,
    close: () => {
      teller.close()
      return Promise.resolve()
    },
  }
}

function surroundingsOf({ namespaces, uidMap, gidMap }: FarWarden, { own }: FarGround): Surroundings {
  return { namespaces, uidMap, gidMap, inheritedFilters: own.filters ?? 0, limitsOf: parseLimits, cgroupOf: () => 'none' }
}

/** Of all in the container the first in a pid namespace of its own, right below the container's. */
async function findWarden(teller: Teller): Promise<FarWarden> {
  for (const pid of await pidsOf(teller)) {
    const facts = await whileThere(factsOf(teller, pid))
    if (facts === undefined || facts.status.pids.length !== 2 || facts.status.pids.at(-1) !== 1) continue
    const [uidMap, gidMap, file] = await Promise.all([
      teller.read(`/proc/${pid}/uid_map`),
      teller.read(`/proc/${pid}/gid_map`),
      teller.identity(`/proc/${pid}/exe`),
    ])
    return { pid, ...facts, uidMap: parseIdMap(uidMap), gidMap: parseIdMap(gidMap), file }
  }
  throw new SandboxError('broken', 'the first process of the cell is gone')
}

function kernel(control: string, value: Json, source: string): Observation {
  return { control, value, evidence: 'kernel', source }
}

async function observeCell({ teller, warden }: FarView, ground: FarGround): Promise<Posture> {
  const { pid } = warden
  const now = await factsOf(teller, pid)
  if (now.namespaces.pid !== warden.namespaces.pid) throw new SandboxError('broken', 'the first process of the cell is gone')
  const { status } = now
  return {
    subject: 'cell',
    observations: [
      kernel('namespaces', compare(now.namespaces, ground.own.namespaces), '/proc/1/ns'),
      kernel('uid-map', warden.uidMap, '/proc/1/uid_map'),
      kernel('gid-map', warden.gidMap, '/proc/1/gid_map'),
      ...(await observeSurface(teller, pid)),
      kernel(
        'warden',
        {
          capabilities: { ...status.capabilities },
          noNewPrivs: status.noNewPrivs,
          seccomp: status.seccomp,
          filters: ownFilters(status, ground.own.filters ?? 0),
          cgroup: 'none',
        },
        '/proc/1/status',
      ),
      ...(await observeCradle({ teller, warden }, ground)),
      ...(await ground.limits()).map(([name, value]) => kernel(`limit.${name}`, value, 'cgroup')),
    ],
  }
}

function compare(own: Namespaces, container: Namespaces): Json {
  return Object.fromEntries(namespaceNames.map((name) => [name, own[name] === container[name] ? 'host' : 'own']))
}

/** What a cell and each of its liners have for themselves. */
async function observeSurface(teller: Teller, pid: number): Promise<Observation[]> {
  const read = (file: string): Promise<string> => teller.read(`/proc/${pid}/${file}`)
  const orNothing = async (file: string): Promise<string> => (await whileThere(read(file))) ?? ''
  const [devices, four, six, sockets, sockets6, table] = await Promise.all([
    ...[read('net/dev'), read('net/route'), orNothing('net/ipv6_route'), read('net/sockstat'), orNothing('net/sockstat6'), read('mountinfo')],
  ])
  const mounts = reachableMounts(parseMountTable(table as string))
  const disk = boundsOfDisk(mounts)
  return [
    kernel('interfaces', interfacesOf(devices as string), '/proc/PID/net/dev'),
    kernel('routes', parseRoutes(four as string, six as string), '/proc/PID/net'),
    kernel('sockets', { ...parseSocketCounts(`${sockets}${sockets6}`) }, '/proc/PID/net/sockstat'),
    kernel('mounts', mounts.map(mountRow), '/proc/PID/mountinfo'),
    kernel('limit.disk', disk.bytes, '/proc/PID/mountinfo'),
    kernel('limit.inodes', disk.inodes, '/proc/PID/mountinfo'),
  ]
}

/** Whoever makes liners; none where there are none. */
async function observeCradle({ teller, warden }: Pick<FarView, 'teller' | 'warden'>, { own }: FarGround): Promise<Observation[]> {
  const all = await Promise.all((await pidsOf(teller)).map((pid) => whileThere(factsOf(teller, pid))))
  const cradle = all.find((facts) => facts !== undefined && placeOf(facts.namespaces, warden.namespaces) === 'cradle')
  if (cradle === undefined) return []
  const { capabilities, noNewPrivs, seccomp } = cradle.status
  const value = { capabilities: { ...capabilities }, noNewPrivs, seccomp, filters: ownFilters(cradle.status, own.filters ?? 0) }
  return [kernel('cradle', value, '/proc/PID/status')]
}

const unreadable = 'only root of the engine’s machine may read a filter'

async function observeProgram(view: FarView, { pid, depth, liner }: ProgramSubject): Promise<Posture> {
  const { teller, surroundings } = view
  const found = await findProgram(view, pid, liner === true ? 3 : 2)
  const short = await observeFarProcess(teller, found, surroundings)
  if (depth === 'short') return { subject: `pid ${pid}`, observations: short }
  const surface = liner ? await observeSurface(teller, found) : []
  const filter: Observation = { control: 'filter', value: null, evidence: 'asserted', source: unreadable }
  return { subject: `pid ${pid}`, observations: [...short, ...surface, await observeFarDescriptors(teller, found), filter] }
}

/** By its number in the cell, which is the second from the container's down; in a liner it has one more. */
async function findProgram({ teller, warden }: FarView, pid: number, levels: 2 | 3): Promise<number> {
  for (const candidate of (await pidsOf(teller)).toReversed()) {
    const facts = await whileThere(factsOf(teller, candidate))
    if (facts?.status.pids.length === levels && facts.status.pids[1] === pid && candidate !== warden.pid) return candidate
  }
  throw new SandboxError('broken', `the program with pid ${pid} is gone`)
}
