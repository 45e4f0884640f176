import { FileWorker, type WardenExit } from '../channel/index.js'
import type { Bystander, GuestUser } from '../contract/driver.js'
import type { UserName } from '../contract/spec.js'
import type { RunPlan } from '../policy/run.js'
import type { ProgramSurroundings } from './program-starter.js'
import { signalName } from './signals.js'
import { WorkerPatience } from './worker-patience.js'
import { type PooledWorker, WorkerPool } from './worker-pool.js'
import { type StartedWorker, startWorker } from './worker-starter.js'

export interface WorkerKind {
  readonly user: UserName
  /** With the folder that holds what overlays keep. */
  readonly layers: boolean
}

export type FileWorkers = WorkerPool<CellFileWorker, WorkerKind>

export interface FileWorkersOptions {
  /** Of the sandbox, for messages. */
  readonly id: string
  /** What any program of this user is held to. */
  readonly plan: (user: UserName) => RunPlan
  readonly findUser: (name: UserName) => GuestUser
  readonly surroundings: () => ProgramSurroundings
}

export function createFileWorkers({ id, plan, findUser, surroundings }: FileWorkersOptions): FileWorkers {
  return new WorkerPool({
    name: `sandbox ${id}`,
    keyOf: ({ user, layers }) => `${user} ${layers}`,
    start: async ({ user, layers }, signal) => {
      const around = surroundings()
      const started = await startWorker({ plan: plan(user), user: findUser(user), layers, signal }, around)
      return new CellFileWorker(started, around)
    },
  })
}

/** How long the news of an end may take. */
const newsMs = 1000

/** A file worker, with what the engine knows of the process it is. */
export class CellFileWorker implements PooledWorker {
  readonly client: FileWorker
  readonly patience: WorkerPatience
  readonly #started: StartedWorker
  readonly #surroundings: ProgramSurroundings
  #killing: Promise<void> | undefined

  constructor(started: StartedWorker, surroundings: ProgramSurroundings) {
    this.#started = started
    this.#surroundings = surroundings
    this.patience = new WorkerPatience({ ...started, clock: surroundings.clock, onSilent: () => void this.kill() })
    this.client = new FileWorker(this.patience)
    const close = (): Promise<void> => started.run.close().catch(() => undefined)
    started.program.exited.then(close, close)
  }

  get ended(): Promise<unknown> {
    return this.#started.program.exited
  }

  get isWaitedFor(): boolean {
    return this.patience.isWaitedFor
  }

  /** As seen in the cell. */
  get pid(): number {
    return this.#started.program.pid
  }

  get bystander(): Bystander {
    return { pid: this.pid, group: this.#started.run.group }
  }

  kill(): Promise<void> {
    this.#killing ??= this.#kill()
    return this.#killing
  }

  /** In words, once it is known to be over. */
  async whyOver(): Promise<string> {
    if (this.patience.isSilent) return 'the file worker did not answer and was ended; a program in the sandbox may have stopped it'
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<undefined>((resolve) => {
      timer = setTimeout(resolve, newsMs, undefined)
    })
    const exit = await Promise.race([this.#started.program.exited.catch(() => undefined), patience])
    clearTimeout(timer)
    return exit === undefined ? 'the file worker was ended' : this.#wordsOf(exit)
  }

  #wordsOf(exit: WardenExit): string {
    if ((this.#started.run.usage().hits.memory ?? 0) > 0) {
      return `the file worker was ended for want of memory (limits.memory is ${this.#surroundings.limits().memoryBytes} bytes)`
    }
    if (exit.kind === 'signaled') return `the file worker was ended by a program in the sandbox (${signalName(exit.code)})`
    return exit.kind === 'lost' ? 'the file worker was ended by a program in the sandbox' : `the file worker gave up (${exit.code})`
  }

  async #kill(): Promise<void> {
    const watch = this.#surroundings.watchAnswer('end a file worker')
    await this.client.kill()
    watch.cancel()
  }
}
