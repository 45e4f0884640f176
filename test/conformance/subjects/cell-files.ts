import type { Warden } from '../../../src/channel/index.js'
import type { Cell, GuestUser, Probe, TemplateRoot } from '../../../src/contract/driver.js'
import { SandboxError } from '../../../src/contract/errors.js'
import type { FileCalls } from '../../../src/contract/files.js'
import type { Spec, UserName } from '../../../src/contract/spec.js'
import { Deadline } from '../../../src/engine/deadline.js'
import type { FilesHost } from '../../../src/engine/file-operation.js'
import { createFileWorkers } from '../../../src/engine/file-workers.js'
import { FilesFacet } from '../../../src/engine/files-facet.js'
import type { ProgramSurroundings } from '../../../src/engine/program-starter.js'
import { planRun } from '../../../src/policy/run.js'

export interface FilesOfCell {
  readonly cell: Cell
  readonly warden: Warden
  readonly spec: Spec
  readonly root: TemplateRoot
  readonly probe: Probe
  /** The cell's own when not given. */
  readonly workdir?: string
}

const clock = { now: () => performance.now(), isStopped: false, join: () => undefined, leave: () => undefined }

/** The files of a cell by its workers, with nobody who inspects them, holds the cell or ends it. */
export function filesOfCell(open: FilesOfCell): FileCalls {
  const { cell, spec } = open
  const findUser = (name: UserName): GuestUser => {
    const user = cell.users.find((each) => each.name === name)
    if (!user) throw new SandboxError('unsupported', `the cell has no user ${name}`)
    return user
  }
  const around = surroundingsOf(open)
  const plan = (user: UserName): ReturnType<typeof planRun> => planRun({ command: ['files'], user, stdin: true, background: true }, spec)
  const host: FilesHost = {
    workers: createFileWorkers({ id: 'cell', plan, findUser, surroundings: () => around }),
    users: cell.users,
    limits: spec.limits,
    workdir: open.workdir ?? cell.workdir,
    defaultUser: spec.user,
    findUser,
    checkOpen: () => Promise.resolve(),
    failure: (cause) => Promise.resolve(cause),
    hold: () => () => undefined,
  }
  return new FilesFacet(() => Promise.resolve(host)).of('cell')
}

function surroundingsOf({ cell, warden, spec, root, probe }: FilesOfCell): ProgramSurroundings {
  const used: Partial<ProgramSurroundings> = {
    open: { cell, warden, filter: undefined, isListed: false },
    root,
    probe,
    inspector: undefined,
    answerMs: 30_000,
    clock,
    limits: () => spec.limits,
    checkOpen: () => Promise.resolve(),
    watchAnswer: () => new Deadline(30_000, () => undefined),
    condemn: (error) => Promise.resolve(error),
    failure: (cause) => Promise.resolve(cause),
  }
  return used as ProgramSurroundings
}
