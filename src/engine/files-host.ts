import type { Cell } from '../contract/driver.js'
import type { SandboxInfo } from '../contract/platform.js'
import type { UserName } from '../contract/spec.js'
import { planRun } from '../policy/run.js'
import type { FilesHost } from './file-operation.js'
import { createFileWorkers, type FileWorkersOptions } from './file-workers.js'
import type { Activity } from './idle.js'
import type { ProgramSurroundings } from './program-starter.js'

export interface FilesHostOptions extends Pick<FileWorkersOptions, 'findUser'> {
  readonly cell: Cell
  readonly activity: Activity
  /** As it is now. */
  readonly info: () => SandboxInfo
  readonly surroundings: () => ProgramSurroundings
  /** Settles when a moment's stillness is over; undefined when there is none. */
  readonly stillFor: () => Promise<void> | undefined
}

/** A sandbox as operations on its files see it. */
export function createFilesHost({ cell, activity, info, findUser, surroundings, stillFor }: FilesHostOptions): FilesHost {
  const { id, spec } = info()
  // Bounded by no time: how long an operation takes is for its caller to say.
  const plan = (user: UserName): ReturnType<typeof planRun> => planRun({ command: ['files'], user, stdin: true, background: true }, info().spec)
  return {
    workers: createFileWorkers({ id, plan, findUser, surroundings }),
    users: cell.users,
    get limits() {
      return info().spec.limits
    },
    workdir: spec.cwd ?? cell.workdir,
    defaultUser: spec.user,
    findUser,
    checkOpen: async () => {
      for (let still = stillFor(); still; still = stillFor()) await still
      await surroundings().checkOpen()
    },
    failure: (cause) => surroundings().failure(cause),
    hold: () => activity.hold(),
  }
}
