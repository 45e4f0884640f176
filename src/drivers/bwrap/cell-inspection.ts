import type { PostureSubject } from '../../contract/driver.js'
import type { Limits } from '../../contract/limits.js'
import type { Expectation, Posture } from '../../contract/posture.js'
import type { InspectorPipe } from '../../sys/posture/filter-pipe.js'
import { pageBytes } from '../../sys/posture/page-size.js'
import type { CellPlan } from './arguments.js'
import { expectedLimits, expectedOfCell } from './cell-expectations.js'
import { createCellPosture } from './cell-posture.js'
import type { Lease } from './lease.js'

/** What must hold around a cell, and what does. */
export interface CellInspection {
  /** Under the limits that it was given last. */
  expects(limits: Limits): readonly Expectation[]
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
  const cell = createCellPosture({ monitorPid, groups: cgroup, inspector })
  return {
    expects: (limits) => [...expected, ...expectedLimits(limits, cgroup === undefined ? [] : holds, page)],
    posture: (subject) => cell.read(subject),
    expectProgram: () => cell.expectProgram(),
    close: () => cell.close(),
  }
}
