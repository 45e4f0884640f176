import type { CellLiners, PostureSubject } from '../../contract/driver.js'
import type { Limits } from '../../contract/limits.js'
import type { Expectation, Posture } from '../../contract/posture.js'
import type { InspectorPipe } from '../../sys/posture/filter-pipe.js'
import { pageBytes } from '../../sys/posture/page-size.js'
import { type CellPlan, cradleIdOf, rootHome } from './arguments.js'
import { expectedDisk, expectedLimits, expectedOfCell } from './cell-expectations.js'
import { createCellPosture } from './cell-posture.js'
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

export interface InspectionOrder {
  readonly plan: CellPlan
  readonly lease: Lease
  readonly monitorPid: number
  readonly inspector: InspectorPipe | undefined
}

/** Best made while the cell is still being built, because looking at the host takes time. */
export function createInspection({ plan, lease: { cgroup, holds }, monitorPid, inspector }: InspectionOrder): CellInspection {
  const expected = expectedOfCell({ plan, hasGroups: cgroup !== undefined })
  const page = pageBytes()
  const ofLiner = expected.flatMap((each) => (each.control === 'mounts' ? [linedMounts(each)] : ['interfaces', 'routes'].includes(each.control) ? [each] : []))
  const id = cradleIdOf(plan.ids)
  const zygote = plan.spec.liners ? { uid: id, gid: id, groups: keptGroups(plan.ids) } : undefined
  const cell = createCellPosture({ monitorPid, groups: cgroup, inspector })
  return {
    expects: (limits) => [...expected, ...expectedLimits(limits, cgroup === undefined ? [] : holds, page)],
    liners: (limits) => (zygote === undefined ? undefined : { expects: [...ofLiner, ...expectedDisk(limits, page)], zygote }),
    posture: (subject) => cell.read(subject),
    expectProgram: () => cell.expectProgram(),
    close: () => cell.close(),
  }
}

/** Each liner has the mounts of its cell, all over again where they can be written to or tell of processes; but there is no root. */
function linedMounts({ control, value }: Expectation): Expectation {
  return { control, value: (value as { target: string }[]).filter(({ target }) => target !== rootHome) }
}
