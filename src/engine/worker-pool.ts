/**
 * Workers of one sandbox, each for one operation at a time. An operation takes one that is idle, or starts one; so many are under way at once, and the rest
 * wait in the order in which they came. A worker whose operation was not brought to its end is never used again.
 */
import { SandboxError } from '../contract/errors.js'
import { Deadline } from './deadline.js'

export interface PooledWorker {
  /** Settles when it is over, whoever ended it. */
  readonly ended: Promise<unknown>
  /** Somebody waits for what it does; one whose answer nobody reads is not. */
  readonly isWaitedFor?: boolean
  /** Idempotent, never rejects. */
  kill(): Promise<void>
}

export interface PoolOptions<Worker, Kind> {
  /** Workers of equal kinds can stand in for each other. */
  keyOf(kind: Kind): string
  start(kind: Kind, signal: AbortSignal | undefined): Promise<Worker>
  /** For messages. */
  readonly name: string
  readonly bounds?: Partial<PoolBounds>
}

interface PoolBounds {
  readonly mostAtOnce: number
  readonly mostLasting: number
  /** How long a worker without work is kept. */
  readonly idleMs: number
  /** How long an operation waits while none of those under way ends, nor is waited for by anyone. */
  readonly waitMs: number
  /** How long it waits while none of them ends. */
  readonly mostWaitMs: number
}

const defaultBounds: PoolBounds = { mostAtOnce: 8, mostLasting: 32, idleMs: 3000, waitMs: 10_000, mostWaitMs: 60_000 }

/** A worker that is somebody's until it is given back. */
export interface Lease<Worker> {
  readonly worker: Worker
  /** Its operation came to its end. Later calls do nothing. */
  giveBack(): void
  /** Its operation did not. Resolves when the worker is gone. */
  drop(): Promise<void>
}

export interface LeaseOrder<Kind> {
  readonly kind: Kind
  /** An operation without an end of its own: it takes nobody's place, and there may be only so many. */
  readonly lasts?: boolean
  readonly signal?: AbortSignal | undefined
}

interface Idle<Worker> {
  readonly key: string
  readonly worker: Worker
  readonly expiry: Deadline
}

interface Waiter {
  resolve(): void
  reject(reason: unknown): void
}

export class WorkerPool<Worker extends PooledWorker, Kind> {
  readonly #options: PoolOptions<Worker, Kind>
  readonly #bounds: PoolBounds
  readonly #idle = new Set<Idle<Worker>>()
  readonly #leased = new Set<Worker>()
  /** Those that have a place among the ones at once. */
  readonly #atWork = new Set<Worker>()
  readonly #waiters = new Set<Waiter>()
  #underWay = 0
  #lasting = 0
  #isClosed = false
  #stuck: Deadline | undefined

  constructor(options: PoolOptions<Worker, Kind>) {
    this.#options = options
    this.#bounds = { ...defaultBounds, ...options.bounds }
  }

  async take({ kind, lasts = false, signal }: LeaseOrder<Kind>): Promise<Lease<Worker>> {
    signal?.throwIfAborted()
    if (lasts) this.#enterLasting()
    else await this.#enter(signal)
    const leave = (): void => (lasts ? this.#leaveLasting() : this.#leave())
    try {
      const key = this.#options.keyOf(kind)
      const worker = this.#takeIdle(key) ?? (await this.#options.start(kind, signal))
      if (!lasts) this.#atWork.add(worker)
      return this.#lease(worker, { key, leave })
    } catch (error) {
      leave()
      throw error
    }
  }

  /** Ends what is idle; what is under way ends with its cell. */
  close(): void {
    this.#isClosed = true
    for (const idle of this.#idle) this.#retire(idle)
  }

  /** Ends every one. */
  async end(): Promise<void> {
    this.close()
    await Promise.all([...this.#leased].map((worker) => worker.kill()))
  }

  #lease(worker: Worker, { key, leave }: { readonly key: string; readonly leave: () => void }): Lease<Worker> {
    let isOver = false
    this.#leased.add(worker)
    const once = (act: () => void): void => {
      if (isOver) return
      isOver = true
      this.#leased.delete(worker)
      this.#atWork.delete(worker)
      act()
      leave()
    }
    return {
      worker,
      giveBack: () => once(() => this.#keep(key, worker)),
      drop: async () => {
        if (isOver) return
        await worker.kill()
        once(() => undefined)
      },
    }
  }

  #takeIdle(key: string): Worker | undefined {
    const found = [...this.#idle].findLast((each) => each.key === key)
    if (!found) return undefined
    this.#idle.delete(found)
    found.expiry.cancel()
    return found.worker
  }

  #keep(key: string, worker: Worker): void {
    if (this.#isClosed) {
      void worker.kill()
      return
    }
    const idle: Idle<Worker> = { key, worker, expiry: new Deadline(this.#bounds.idleMs, () => this.#retire(idle)) }
    this.#idle.add(idle)
    // One that a guest killed is not handed out.
    void worker.ended.then(
      () => this.#forget(idle),
      () => this.#forget(idle),
    )
  }

  #retire(idle: Idle<Worker>): void {
    this.#forget(idle)
    void idle.worker.kill()
  }

  #forget(idle: Idle<Worker>): void {
    idle.expiry.cancel()
    this.#idle.delete(idle)
  }

  #enterLasting(): void {
    if (this.#lasting >= this.#bounds.mostLasting) {
      throw new SandboxError('busy', `${this.#options.name} has ${this.#lasting} watches on files; no more are allowed at once`)
    }
    this.#lasting += 1
  }

  #leaveLasting(): void {
    this.#lasting -= 1
  }

  async #enter(signal: AbortSignal | undefined): Promise<void> {
    if (this.#underWay < this.#bounds.mostAtOnce && this.#waiters.size === 0) {
      this.#underWay += 1
      return
    }
    this.#stuck ??= this.#watchStuck()
    await new Promise<void>((resolve, reject) => {
      const settle = (act: () => void): void => {
        this.#waiters.delete(waiter)
        signal?.removeEventListener('abort', onAbort)
        act()
      }
      const onAbort = (): void => settle(() => reject(signal?.reason))
      const waiter: Waiter = { resolve: () => settle(resolve), reject: (reason) => settle(() => reject(reason)) }
      this.#waiters.add(waiter)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  #leave(): void {
    this.#stuck?.cancel()
    this.#stuck = undefined
    const [next] = this.#waiters
    // The place is handed on.
    if (next) next.resolve()
    else this.#underWay -= 1
    if (this.#waiters.size > 0) this.#stuck = this.#watchStuck()
  }

  /** Operations whose readers stopped reading hold their places for good: whoever waits behind them is told. */
  #watchStuck(waitedMs = 0): Deadline {
    const { waitMs, mostWaitMs, mostAtOnce } = this.#bounds
    return new Deadline(waitMs, () => {
      const waited = waitedMs + waitMs
      const isAtWork = [...this.#atWork].some((worker) => worker.isWaitedFor === true)
      this.#stuck = isAtWork && waited < mostWaitMs ? this.#watchStuck(waited) : undefined
      if (this.#stuck) return
      const why = `${this.#options.name} has ${mostAtOnce} file operations open, and none has ended for ${waited / 1000} s`
      const hint = 'read streams of files to their end, or cancel them'
      for (const waiter of [...this.#waiters]) waiter.reject(new SandboxError('busy', why, { hint }))
    })
  }
}
