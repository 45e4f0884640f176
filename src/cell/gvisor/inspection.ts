/**
 * What holds around a sandbox of gVisor. The host's kernel is asked about the wall itself: the sentry and the gofer, their ids, rights, filters, namespaces, groups
 * and mounts. What holds for programs inside is for the sentry to say, which is their kernel, and is told as the runtime's word.
 */
import type { CellInspection, InspectionOrder } from '../cell-inspection.js'
import { expectedLimits } from '../cell-expectations.js'
import type { PostureSubject } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import type { Json, Posture } from '../../contract/posture.js'
import { isGone } from '../../sys/posture/proc-files.js'
import { expectedOfSandbox } from './expectations.js'
import { observeSandbox } from './posture.js'
import { observeTold, parseToldOfCell, type ToldOfCell } from './told.js'

type Inspection = CellInspection & { readonly told: (of: 'cell' | number, text: string) => void }

/** So many programs may wait to be looked at, or have been told of and ended unseen. */
const mostKept = 1024

export interface SandboxLook {
  /** In which every process of the sandbox must be. */
  readonly folders: readonly string[]
  /** That the gofer must have. */
  readonly mounts: Json
}

export function inspectSandbox(order: InspectionOrder, { folders, mounts }: SandboxLook): Inspection {
  const { plan, lease, own, monitorPid, inspector } = order
  const expected = expectedOfSandbox({ plan, cgroup: folders.length > 0 ? 'cell' : 'none', mounts })
  let cell: ToldOfCell | undefined
  const programs = new Map<number, string>()
  inspector?.destroy()
  const look = (subject: PostureSubject): Posture[] => {
    if (subject.kind === 'cell') return [observeSandbox({ monitorPid, own, folders, cgroup: lease.cgroup, told: cell })]
    if (subject.kind === 'everything') return [unseen]
    const text = programs.get(subject.pid)
    programs.delete(subject.pid)
    if (text === undefined) throw new SandboxError('broken', `nothing was told of the program with pid ${subject.pid}`)
    return [{ subject: `pid ${subject.pid}`, observations: observeTold(text, subject.depth) }]
  }
  return {
    expects: (limits) => [...expected, ...expectedLimits(limits, lease.cgroup === undefined ? [] : lease.holds, own.pageBytes)],
    liners: () => undefined,
    expectProgram: () => undefined,
    close: () => Promise.resolve(),
    told: (of, text) => {
      if (of === 'cell') cell = parseToldOfCell(text)
      else programs.set(of, text)
      for (const pid of programs.keys()) if (programs.size > mostKept) programs.delete(pid)
    },
    posture: (subject) => new Promise((resolve) => resolve(orGone(() => look(subject)))),
  }
}

function orGone<T>(look: () => T): T {
  try {
    return look()
  } catch (error) {
    if (isGone(error)) throw new SandboxError('broken', 'what its posture was asked of is gone', { cause: error })
    throw error
  }
}

const unseen: Posture = {
  subject: 'cell',
  observations: [{ control: 'complete', value: false, evidence: 'asserted', source: 'processes of gVisor are shown to nobody outside' }],
}
