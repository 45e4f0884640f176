import type { StartResult, WardenExit } from '../channel/index.js'
import { SandboxError } from '../contract/errors.js'
import type { Outcome } from '../contract/run.js'
import { errno } from './errno.js'
import type { Ended, Stop } from './outcome.js'
import { killSignal } from './signals.js'

export type StartFailure = Extract<StartResult, { readonly started: false }>

export const permissionDenied = errno.EACCES

const execReasons: Readonly<Record<number, string>> = {
  [errno.EPERM]: 'may not be executed',
  [errno.ENOENT]: 'was not found, or the interpreter in its first line was not',
  [errno.E2BIG]: 'was given more arguments and variables than fit',
  [errno.ENOEXEC]: 'is in no format that can be executed',
  [errno.EAGAIN]: 'found no room for another process',
  [errno.ENOMEM]: 'found no memory to start in',
  [errno.EACCES]: 'is a folder or may not be executed',
  [errno.ENOTDIR]: 'has something in its path that is not a folder',
  [errno.EISDIR]: 'is a folder',
  [errno.ETXTBSY]: 'is being written to',
  [errno.ENAMETOOLONG]: 'has too long a name',
  [errno.ELOOP]: 'goes through too many symbolic links',
}

const cwdReasons: Readonly<Record<number, string>> = {
  [errno.ENOENT]: 'does not exist',
  [errno.ENOTDIR]: 'is not a folder',
  [errno.EACCES]: 'may not be entered by this user',
}

export interface Attempted {
  readonly program: string
  /** Started only to interpret a command that was given as one string. */
  readonly isShell?: boolean
  /** Only programs on a list may be executed. */
  readonly isListed?: boolean
}

const unlisted = 'is not among the commands of this sandbox'
const unlistedShell = `${unlisted}; it is the shell that runs a command given as one string`
const unlistedProgram = `${unlisted}, is a folder, or may not be executed`

/** A program that is not there or not executable is an outcome, as a shell tells it: 127 or 126. */
export function notStarted(failure: StartFailure, { program, isShell = false, isListed = false }: Attempted): Extract<Outcome, { kind: 'not-started' }> {
  const refused = isShell ? unlistedShell : unlistedProgram
  const known = failure.errno === errno.EACCES && isListed ? refused : execReasons[failure.errno]
  const words = known ?? `could not be executed (${failure.text}, errno ${failure.errno})`
  return { kind: 'not-started', code: failure.errno === errno.ENOENT ? 127 : 126, reason: `${program} ${words}` }
}

/** What is no fault of the program: a folder that cannot be entered, or a cell that cannot start one now. */
export function startError(failure: StartFailure, cwd: string): SandboxError {
  if (failure.stage === 'cwd') return new SandboxError('invalid', `cwd: ${cwd} ${cwdReasons[failure.errno] ?? `cannot be entered (errno ${failure.errno})`}`)
  const isFull = failure.errno === errno.EAGAIN || failure.errno === errno.ENOMEM
  return new SandboxError(isFull ? 'busy' : 'internal', `the warden cannot start a program: ${failure.text} (errno ${failure.errno})`)
}

interface KilledEarly extends Pick<Ended, 'memoryKills' | 'memoryBytes'> {
  readonly result: StartFailure
  readonly exit: WardenExit
  /** Why the engine ended it, if that did. */
  readonly stop: Stop | undefined
}

/** A program that was ended before it ran: by the engine, for want of memory, or by another guest's signal. */
export function killedEarly({ result, exit, stop, memoryKills = 0, memoryBytes }: KilledEarly): Outcome {
  if (stop) return stop
  const isForMemory = exit.kind === 'signaled' && exit.code === killSignal && memoryKills > 0
  return isForMemory ? { kind: 'out-of-memory', limitBytes: memoryBytes } : { kind: 'killed', reason: result.text }
}
