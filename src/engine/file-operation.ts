/** One operation on files: a worker for it, its end, and what is told when it has another end than it should. */
import { FileFailure } from '../channel/index.js'
import type { GuestUser } from '../contract/driver.js'
import { reworded, SandboxError } from '../contract/errors.js'
import type { Limits } from '../contract/limits.js'
import type { UserName } from '../contract/spec.js'
import { Deadline } from './deadline.js'
import { errno } from './errno.js'
import { describeCall, type FileCall, fileError } from './file-errors.js'
import type { CellFileWorker, FileWorkers } from './file-workers.js'
import type { Lease } from './worker-pool.js'

/** What of a sandbox operations on files need. */
export interface FilesHost {
  readonly workers: Pick<FileWorkers, 'take' | 'close' | 'end'>
  readonly users: readonly GuestUser[]
  readonly limits: Limits
  readonly workdir: string
  readonly defaultUser: UserName
  /** Throws when the cell has no such user. */
  findUser(name: UserName): GuestUser
  /** Throws when it is over, or stands still. */
  checkOpen(): Promise<void>
  /** Why the channel is over. */
  failure(cause: unknown): Promise<unknown>
  /** In progress until what this returns is called. */
  hold(): () => void
}

export interface OperationOrder {
  readonly host: FilesHost
  readonly call: FileCall
  readonly user: UserName
  readonly signal: AbortSignal | undefined
  /** Has no end of its own. */
  readonly lasts?: boolean
  /** With the folder of what is written over folders of the host's. */
  readonly layers?: boolean
}

interface Opened<T> {
  readonly operation: FileOperation
  readonly answer: T
}

/** How long an answer that nobody begins to read is kept. */
const unreadMs = 60_000

export class FileOperation {
  readonly #order: OperationOrder
  readonly #lease: Lease<CellFileWorker>
  readonly #letGo: () => void
  readonly #onAbort = (): void => void this.#lease.drop()

  private constructor(order: OperationOrder, lease: Lease<CellFileWorker>) {
    this.#order = order
    this.#lease = lease
    this.#letGo = order.host.hold()
    order.signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (order.signal?.aborted) this.#onAbort()
  }

  static async begin(order: OperationOrder): Promise<FileOperation> {
    const { host, call, user, signal, lasts = false, layers = false } = order
    await host.checkOpen()
    try {
      return new FileOperation(order, await host.workers.take({ kind: { user, layers }, lasts, signal }))
    } catch (error) {
      if (!(error instanceof SandboxError) || (error.code !== 'conflict' && error.code !== 'busy')) throw error
      throw reworded(error, `${describeCall(call)}: ${error.message}`)
    }
  }

  /** From one request to its last answer. */
  static async run<T>(order: OperationOrder, act: (worker: CellFileWorker) => Promise<T>, canRepeat?: () => boolean): Promise<T> {
    const { operation, answer } = await FileOperation.open(order, act, canRepeat)
    operation.#end()
    return answer
  }

  /** Up to the first answer. A worker that someone starved is replaced, once, unless `canRepeat` says that it is too late. */
  static async open<T>(order: OperationOrder, act: (worker: CellFileWorker) => Promise<T>, canRepeat = (): boolean => true): Promise<Opened<T>> {
    for (let isFirst = true; ; isFirst = false) {
      const operation = await FileOperation.begin(order)
      try {
        return { operation, answer: await act(operation.worker) }
      } catch (error) {
        const failure = await operation.fail(error)
        const isRepeated = isFirst && failsAtOnce(error) && order.signal?.aborted !== true && canRepeat()
        if (!isRepeated) throw failure
      }
    }
  }

  get worker(): CellFileWorker {
    return this.#lease.worker
  }

  /** What comes piece by piece, up to its last. One consumer; leaving early ends the worker. */
  stream<T>(source: AsyncIterable<T>): AsyncIterableIterator<T, undefined> {
    const pieces = source[Symbol.asyncIterator]()
    const done = { done: true, value: undefined } as const
    let isOver = false
    const leave = async (): Promise<typeof done> => {
      if (!isOver) await this.#leave()
      isOver = true
      unread.cancel()
      return done
    }
    const unread = new Deadline(unreadMs, () => void leave())
    const stream: AsyncIterableIterator<T, undefined> = {
      next: async () => {
        unread.cancel()
        if (isOver) return done
        try {
          const next = await pieces.next()
          if (next.done !== true) return next
          isOver = true
          this.#end()
          return done
        } catch (error) {
          isOver = true
          throw await this.fail(error)
        }
      },
      return: leave,
      [Symbol.asyncIterator]: () => stream,
    }
    return stream
  }

  /** What is told instead of what went wrong in between. */
  async fail(error: unknown): Promise<unknown> {
    const { call, host, signal } = this.#order
    if (error instanceof FileFailure && this.worker.client.isIdle && !isStarved(error)) this.#end()
    else await this.#leave()
    if (signal?.aborted === true) return signal.reason
    if (error instanceof FileFailure) return fileError(call, error, host.limits)
    if (!(error instanceof SandboxError) || (error.code !== 'broken' && error.code !== 'closed')) return error
    if (!error.message.startsWith('the file worker ')) return host.failure(error)
    return this.#whyOver(error)
  }

  /** It ended under the operation: with its sandbox, or by someone in there. */
  async #whyOver(error: SandboxError): Promise<unknown> {
    const { call, host } = this.#order
    try {
      await host.checkOpen()
    } catch (over) {
      return over
    }
    const why = error.message.startsWith('the file worker ended') ? await this.worker.whyOver() : error.message
    return new SandboxError('conflict', `${describeCall(call)}: ${why}`, { cause: error })
  }

  async #leave(): Promise<void> {
    await this.#lease.drop()
    this.#end()
  }

  #end(): void {
    this.#order.signal?.removeEventListener('abort', this.#onAbort)
    this.#lease.giveBack()
    this.#letGo()
  }
}

/** A guest may lower the limits of a worker with its id (prlimit); the next worker has those of the sandbox. */
const starving = new Set<number>([errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN])

function failsAtOnce(error: unknown): boolean {
  return error instanceof FileFailure && starving.has(error.errno)
}

function isStarved(error: unknown): boolean {
  return failsAtOnce(error) || (error instanceof FileFailure && error.errno === errno.EFBIG)
}
