/**
 * The first program of a new sandbox is made ready while its cell opens. It waits at its gate, where it is looked at as every program is, once its cell was; and it waits there for whatever is run
 * first, however late: in a thousand sandboxes any is as quick as one. Whoever creates the sandbox does not wait for it.
 */
import type { SandboxError } from '../contract/errors.js'
import type { PlannedSandbox } from '../policy/apply.js'
import type { MadeCell, Preparation } from './making.js'
import { beginReady, type Held } from './ready-programs.js'
import { usualProgram } from './usual-program.js'

export type FirstProgram = (made: MadeCell, cellSeen: Promise<unknown>) => Held | undefined

export function firstProgram({ cell, spec }: Preparation, planned: PlannedSandbox): FirstProgram | undefined {
  // Where what may be executed is listed, that is tried first.
  if (cell.commands !== undefined || cell.liners === true) return undefined
  return (made, cellSeen) => {
    const usual = usualProgram({ made, root: cell.root, spec, origins: planned.origins })
    if (!usual) return undefined
    let tell: (error: SandboxError) => void = () => undefined
    const unlike = new Promise<SandboxError>((resolve) => (tell = resolve))
    const condemn = (error: SandboxError): Promise<SandboxError> => {
      tell(error)
      return Promise.resolve(error)
    }
    const { open, inspector } = made
    return { ...beginReady(usual.kind, { open, inspector, checkOpen: () => Promise.resolve(), condemn, cellSeen }), unlike }
  }
}
