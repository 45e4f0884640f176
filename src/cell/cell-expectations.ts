import type { Limits } from '../contract/limits.js'
import type { Expectation, Json } from '../contract/posture.js'
import type { CgroupLimit } from '../sys/cgroups.js'
import { namespaceNames } from '../sys/posture/namespaces.js'
import { type CellPlan, givenCapabilities, userId } from './arguments.js'
import { capabilityMask } from './capabilities.js'
import { expectedRoutes, expectedSockets } from './cell-network.js'
import { expectedMounts, type HostFiles, readHostFiles } from './expected-mounts.js'
import { isKernel } from './kernel.js'

export interface ExpectationOrder {
  readonly plan: CellPlan
  readonly hasGroups: boolean
  readonly host?: HostFiles
  /** Kernels before 5.9 do not tell how many filters a process is under. */
  readonly countsFilters?: boolean
}

/** What must be observed of a cell that is built by this plan, whatever was built; the limits apart, because they can change while it lives. */
export function expectedOfCell({ plan, hasGroups, host = readHostFiles(), countsFilters = isKernel(5, 9) }: ExpectationOrder): readonly Expectation[] {
  return [
    { control: 'namespaces', value: Object.fromEntries(namespaceNames.map((name) => [name, 'own'])) },
    { control: 'uid-map', value: idMap(plan, 'uid') },
    { control: 'gid-map', value: idMap(plan, 'gid') },
    { control: 'interfaces', value: ['lo'] },
    { control: 'routes', value: expectedRoutes(plan.spec) },
    { control: 'sockets', value: expectedSockets(plan.spec) },
    { control: 'mounts', value: expectedMounts(plan, host) },
    { control: 'warden', value: expectedWarden({ plan, hasGroups, countsFilters }) },
    ...(plan.spec.liners ? [{ control: 'cradle', value: expectedCradle({ countsFilters }) }] : []),
  ]
}

/** Each limit that something holds here, as the kernel states it: memory and disks are whole pages. */
export function expectedLimits(limits: Limits, holds: readonly CgroupLimit[], page: number): readonly Expectation[] {
  const ofGroups: Readonly<Record<CgroupLimit, number | undefined>> = {
    memory: Math.floor(limits.memoryBytes / page) * page,
    cpus: Math.round(limits.cpus * periodUs) / periodUs,
    processes: limits.processes,
    readRate: limits.readBytesPerSecond,
    writeRate: limits.writeBytesPerSecond,
    // Counted by the engine, which ends the run: the kernel states nothing.
    cpuTime: undefined,
  }
  return [
    ...expectedDisk(limits, page),
    ...holds.flatMap((name) => (ofGroups[name] === undefined ? [] : [{ control: `limit.${name}`, value: ofGroups[name] }])),
  ]
}

export function expectedDisk(limits: Limits, page: number): readonly Expectation[] {
  return [
    { control: 'limit.disk', value: Math.ceil(limits.diskBytes / page) * page },
    { control: 'limit.inodes', value: limits.inodes },
  ]
}

/** Of the processor's time slices. */
const periodUs = 100_000

function idMap({ ids }: CellPlan, kind: 'uid' | 'gid'): Json {
  if (ids.kind === 'range') return [[0, ids.base, ids.size]]
  const own = kind === 'uid' ? process.geteuid?.() : process.getegid?.()
  return [[userId, ids.host?.[kind] ?? own ?? 0, 1]]
}

/** It mounts nothing and makes no routes any more, and has set a filter of its own. */
function expectedWarden({ plan, hasGroups, countsFilters }: Required<Omit<ExpectationOrder, 'host'>>): Json {
  const kept = capabilityMask(givenCapabilities(plan).filter((name) => !['SYS_ADMIN', 'NET_ADMIN'].includes(name))).toString(16)
  return {
    capabilities: { effective: kept, permitted: kept, inheritable: '0', bounding: kept, ambient: '0' },
    noNewPrivs: true,
    seccomp: 2,
    ...(countsFilters && { filters: 1 }),
    cgroup: hasGroups ? 'cell' : 'none',
  }
}

function expectedCradle({ countsFilters }: { readonly countsFilters: boolean }): Json {
  const capabilities = { effective: '0', permitted: '0', inheritable: '0', bounding: '0', ambient: '0' }
  return { capabilities, noNewPrivs: true, seccomp: 2, ...(countsFilters && { filters: 1 }) }
}
