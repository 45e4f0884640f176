import type { OwnPosture } from '../cell-posture.js'
import { SandboxError } from '../../contract/errors.js'
import type { Json, Observation, Posture } from '../../contract/posture.js'
import type { CellCgroup } from '../../sys/cell-cgroup.js'
import { parseIdMap } from '../../sys/posture/id-map.js'
import { boundsOfDisk } from '../../sys/posture/memory-disk.js'
import { type MountEntry, parseMountTable, reachableMounts } from '../../sys/posture/mount-table.js'
import { namespaceNames, readNamespaces } from '../../sys/posture/namespaces.js'
import { readProc } from '../../sys/posture/proc-files.js'
import { parseStatus } from '../../sys/posture/process-status.js'
import { parseRoutes } from '../../sys/posture/routes.js'
import { readSocketCounts } from '../../sys/posture/socket-counts.js'
import { findSandbox } from './processes.js'
import type { ToldOfCell } from './told.js'

export interface SandboxView {
  readonly monitorPid: number
  readonly own: OwnPosture
  /** In which all of it must be. */
  readonly folders: readonly string[]
  readonly cgroup: Pick<CellCgroup, 'stated'> | undefined
  /** Undefined as long as the warden was not heard. */
  readonly told: ToldOfCell | undefined
}

const mountTableBytes = 16_384

export function observeSandbox(view: SandboxView): Posture {
  const found = findSandbox(view.monitorPid)
  if (found === undefined) throw new SandboxError('broken', 'the sandbox of the cell is gone')
  const { sentry, gofer } = found
  const mounts = reachableMounts(parseMountTable(readProc(gofer, 'mountinfo', mountTableBytes)))
  const disk = boundsOfDisk(mounts.filter(({ target }) => target === '/.disk'))
  return {
    subject: 'cell',
    observations: [
      kernel('namespaces', namespacesOf(sentry, view.own), '/proc/SENTRY/ns'),
      kernel('uid-map', parseIdMap(readProc(sentry, 'uid_map')), '/proc/SENTRY/uid_map'),
      kernel('gid-map', parseIdMap(readProc(sentry, 'gid_map')), '/proc/SENTRY/gid_map'),
      kernel('interfaces', interfacesOf(readProc(sentry, 'net/dev')), '/proc/SENTRY/net/dev'),
      kernel('routes', parseRoutes(readProc(sentry, 'net/route'), readProc(sentry, 'net/ipv6_route')), '/proc/SENTRY/net'),
      kernel('sockets', { ...readSocketCounts(sentry) }, '/proc/SENTRY/net/sockstat'),
      kernel('mounts', mounts.map(mountRow), '/proc/GOFER/mountinfo'),
      kernel('limit.disk', disk.bytes, '/proc/GOFER/mountinfo'),
      kernel('limit.inodes', disk.inodes, '/proc/GOFER/mountinfo'),
      kernel('sentry', wallOf(sentry, view), '/proc/SENTRY/status'),
      kernel('gofer', wallOf(gofer, view), '/proc/GOFER/status'),
      ...observeKernel(view.told),
      ...statedLimits(view.cgroup),
    ],
  }
}

function kernel(control: string, value: Json, source: string): Observation {
  return { control, value, evidence: 'kernel', source }
}

function namespacesOf(pid: number, { namespaces: own }: OwnPosture): Json {
  const now = readNamespaces(pid)
  return Object.fromEntries(namespaceNames.map((name) => [name, now[name] === own[name] ? 'host' : 'own']))
}

function interfacesOf(table: string): string[] {
  return table
    .split('\n')
    .flatMap((line) => /^\s*([^\s:|]+):/.exec(line)?.[1] ?? [])
    .sort()
}

function mountRow({ target, type, access, nosuid, nodev, noexec }: MountEntry): Json {
  return { target, type, access, nosuid, nodev, noexec }
}

/** As the host counts ids. */
function wallOf(pid: number, { own, folders }: SandboxView): Json {
  const status = parseStatus(readProc(pid, 'status'))
  const isIn = own.places.membershipOf(pid)
  const missed = folders.find((folder) => !isIn(folder))
  return {
    uids: [...new Set(status.uids)],
    gids: [...new Set(status.gids)],
    groups: status.groups,
    capabilities: { ...status.capabilities },
    noNewPrivs: status.noNewPrivs,
    seccomp: status.seccomp,
    cgroup: missed === undefined ? (folders.length === 0 ? 'none' : 'cell') : `not in ${missed}`,
  }
}

/** The log and the version are read inside, and could not be told by any other kernel. */
function observeKernel(told: ToldOfCell | undefined): Observation[] {
  const silent = (control: string): Observation => ({ control, value: null, evidence: 'asserted', source: 'the warden was not heard yet' })
  if (told === undefined) return [silent('kernel'), silent('warden')]
  const { capabilities, seccomp } = told.status
  return [
    {
      control: 'kernel',
      value: { isGvisor: /Starting gVisor/.test(told.log), version: told.version },
      evidence: 'probe',
      source: 'syslog(2) and /proc/version, read inside',
    },
    { control: 'warden', value: { capabilities, seccomp, filters: null }, evidence: 'runtime', source: "gVisor's /proc/1/status, read by the warden" },
  ]
}

function statedLimits(cgroup: Pick<CellCgroup, 'stated'> | undefined): Observation[] {
  if (cgroup === undefined) return []
  const { memoryBytes, cpus, readBytesPerSecond, writeBytesPerSecond } = cgroup.stated()
  const stated = { memory: memoryBytes, cpus, readRate: readBytesPerSecond, writeRate: writeBytesPerSecond }
  return Object.entries(stated).map(([name, value]) =>
    kernel(`limit.${name}`, value ?? null, name === 'memory' ? "cgroup, less what is gVisor's own" : 'cgroup'),
  )
}
