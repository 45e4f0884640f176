import type { StartRequest, WardenProcess } from '../channel/index.js'
import type { CellRun, GuestUser } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { RunPlan } from '../policy/run.js'
import { errno } from './errno.js'
import type { ProgramSurroundings } from './program-starter.js'
import type { StartFailure } from './start-failure.js'
import { StartPatience } from './start-patience.js'
import { countedIn, startRequest } from './start-request.js'

export interface WorkerOrder {
  /** What any program of the sandbox is held to. */
  readonly plan: RunPlan
  readonly user: GuestUser
  /** With the folder that holds what overlays keep. */
  readonly layers: boolean
  readonly signal: AbortSignal | undefined
}

export interface StartedWorker {
  readonly program: WardenProcess
  /** Where it is counted; closed by whoever ends the worker. */
  readonly run: CellRun
}

/** Starts a file worker: held, gated and looked at as any program is, but no run of anybody's. */
export async function startWorker(order: WorkerOrder, surroundings: ProgramSurroundings): Promise<StartedWorker> {
  const { open, root, probe } = surroundings
  const { plan, user, layers } = order
  const run = open.cell.beginRun({ memoryBytes: undefined, processes: undefined })
  try {
    const held = startRequest({ plan, user, cell: open.cell, root, probe })
    const request: StartRequest = { ...countedIn(held, run), argv: ['files'], env: {}, cwd: '/', stdin: true, worker: 'files', layers }
    order.signal?.throwIfAborted()
    await surroundings.checkOpen()
    const program = await launch({ request, user, signal: order.signal }, surroundings)
    return { program, run }
  } catch (error) {
    run.close().catch(() => undefined)
    throw error
  }
}

type Launch = Pick<WorkerOrder, 'user' | 'signal'> & { readonly request: StartRequest }

async function launch({ request, user, signal }: Launch, surroundings: ProgramSurroundings): Promise<WardenProcess> {
  const { open, inspector, answerMs, clock, watchAnswer, condemn, failure } = surroundings
  const patience = new StartPatience({ timeMs: undefined, answerMs, signal, clock, watchAnswer })
  const atGate = inspector && ((pid: number): Promise<void> => inspector.inspectWorker({ pid, user, request }))
  try {
    const result = await open.warden.start(request, { giveUp: patience.giveUp, ...(atGate && { atGate }) })
    signal?.throwIfAborted()
    if (result.started) return result.process
    throw workerError(result, surroundings.limits().processes)
  } catch (error) {
    if (signal?.aborted === true && error === signal.reason) throw error
    if (error instanceof SandboxError && error.code === 'not-enforced') throw await condemn(error)
    throw error instanceof SandboxError && error.code !== 'broken' && error.code !== 'closed' ? error : await failure(error)
  } finally {
    patience.end()
  }
}

function workerError(result: StartFailure, processes: number): SandboxError {
  if (result.exit) return new SandboxError('conflict', 'the file worker was ended by a program in the sandbox, or for want of memory')
  if (result.errno === errno.EAGAIN) {
    return new SandboxError('busy', `the file worker found no room for another process (limits.processes is ${processes})`)
  }
  const isFull = result.errno === errno.ENOMEM
  if (result.errno === errno.EOPNOTSUPP) return new SandboxError('unsupported', `the file worker cannot be started here: ${result.text}`)
  return new SandboxError(isFull ? 'busy' : 'internal', `the file worker cannot be started: ${result.text} (errno ${result.errno})`)
}
