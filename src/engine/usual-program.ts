import type { StartRequest } from '../channel/index.js'
import type { GuestUser, RunLimits, TemplateRoot } from '../contract/driver.js'
import type { Origins } from '../contract/policy.js'
import type { Spec } from '../contract/spec.js'
import { planRun } from '../policy/run.js'
import type { MadeCell } from './making.js'
import { limitsOf } from './program-starter.js'
import { mayWait, type ProgramKind, programKind } from './ready-programs.js'
import { startRequest } from './start-request.js'

export interface UsualProgram {
  readonly request: StartRequest
  readonly user: GuestUser
  readonly limits: RunLimits
  readonly kind: ProgramKind
}

export interface UsualOrder {
  readonly made: Pick<MadeCell, 'open' | 'probe' | 'inspector'>
  readonly root: TemplateRoot
  readonly spec: Spec
  readonly origins: Origins
}

/** What most programs are: of the sandbox's user, not fed, with its limits. Undefined where none can wait. */
export function usualProgram({ made: { open, probe, inspector }, root, spec, origins }: UsualOrder): UsualProgram | undefined {
  const user = open.cell.users.find(({ name }) => name === spec.user)
  // A profile of the user's own may refuse what a program does between its release and its execve.
  if (!inspector || !user || spec.seccomp !== undefined || !mayWait(spec.limits)) return undefined
  const asked = spec.limits.stated.filter((name) => origins[`limits.${name}`] === 'spec')
  // Whose variables it will have is not known yet.
  const plan = planRun({ command: ['true'] }, { ...spec, env: {} }, asked)
  const limits = limitsOf(plan)
  const request = startRequest({ plan, user, cell: open.cell, root, probe })
  const kind = programKind(request, user, limits)
  return kind && { request, user, limits, kind }
}
