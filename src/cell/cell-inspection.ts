import type { CellLiners, PostureSubject } from '../contract/driver.js'
import type { Limits } from '../contract/limits.js'
import type { Expectation, Posture } from '../contract/posture.js'
import type { InspectorPipe } from '../sys/posture/filter-pipe.js'
import { type CellPlan, cradleIdOf, rootHome } from './arguments.js'
import { expectedDisk, expectedLimits, expectedOfCell } from './cell-expectations.js'
import { expectedSockets } from './cell-network.js'
import { createCellPosture, type OwnPosture } from './cell-posture.js'
import type { HostFiles } from './expected-mounts.js'
import type { FirstProcessOptions } from './first-process.js'
import { keptGroups } from './kept-groups.js'
import type { Lease } from './lease.js'

/** What must hold around a cell, and what does. */
export interface CellInspection {
  /** Under the limits that it was given last. */
  expects(limits: Limits): readonly Expectation[]
  /** The same of its liners; undefined where there are none. */
  liners(limits: Limits): CellLiners | undefined
  posture(subject: PostureSubject): Promise<readonly Posture[]>
  expectProgram(): void
  close(): Promise<void>
}

export interface InspectionOrder extends FirstProcessOptions {
  readonly plan: CellPlan
  readonly lease: Lease
  readonly own: OwnPosture
  readonly monitorPid: number
  readonly inspector: InspectorPipe | undefined
  /** What the cell is made of, where that is not as this process sees it. */
  readonly host?: HostFiles | undefined
}

/** Best made while the cell is still being built, because looking at the host takes time. */
export function createInspection(order: InspectionOrder): CellInspection {
  const { lease, own, monitorPid, inspector, isWithin } = order
  const { cgroup, holds } = lease
  const demands = demandsOf(order, { holds: cgroup === undefined ? [] : holds, hasGroups: cgroup !== undefined })
  const cell = createCellPosture({ own, monitorPid, groups: cgroup, inspector, isWithin })
  return {
    ...demands,
    posture: (subject) => cell.read(subject),
    expectProgram: () => cell.expectProgram(),
    close: () => cell.close(),
  }
}

export interface Grounds {
  /** The limits that something holds. */
  readonly holds: Lease['holds']
  readonly hasGroups: boolean
  /** Whether the kernel tells how many filters a process is under; this one's is asked unless given. */
  readonly countsFilters?: boolean
}

/** What must hold, whoever looks. */
export function demandsOf(
  { plan, own, host }: Pick<InspectionOrder, 'plan' | 'own' | 'host'>,
  { holds, ...grounds }: Grounds,
): Pick<CellInspection, 'expects' | 'liners'> {
  const expected = expectedOfCell({ plan, ...grounds, ...(host && { host }) })
  const page = own.pageBytes
  const ofLiner = expected.flatMap((each) => (each.control === 'mounts' ? [linedMounts(each)] : ['interfaces', 'routes'].includes(each.control) ? [each] : []))
  const sockets = (ports: readonly number[]): Expectation => ({ control: 'sockets', value: expectedSockets(plan.spec, ports) })
  const id = cradleIdOf(plan.ids)
  const zygote = plan.spec.liners ? { uid: id, gid: id, groups: keptGroups(plan.ids) } : undefined
  return {
    expects: (limits) => [...expected, ...expectedLimits(limits, holds, page)],
    liners: (limits) => (zygote === undefined ? undefined : { expects: [...ofLiner, ...expectedDisk(limits, page)], sockets, zygote }),
  }
}

/**
 * Each liner has the mounts of its cell, all over again where they can be written to or tell of processes; but there is no root, and nothing of /proc can be written
 * to: a program is not to choose who ends before it where memory is used up.
 */
function linedMounts({ control, value }: Expectation): Expectation {
  const mounts = value as { readonly target: string; readonly type: string }[]
  const kept = mounts.filter(({ target, type }) => target !== rootHome && !(type === 'proc' && target.startsWith('/proc/')))
  return { control, value: kept.map((mount) => (mount.target === '/proc' ? { ...mount, access: 'ro' } : mount)) }
}
