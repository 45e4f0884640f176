/** One file worker for several operations, one after the other, while no other can be started. */
import type { Bystander } from '../contract/driver.js'
import { SandboxError } from '../contract/errors.js'
import type { CellFileWorker, FileWorkers, WorkerKind } from './file-workers.js'
import type { Lease, LeaseOrder } from './worker-pool.js'

export class LoneWorker implements Pick<FileWorkers, 'take' | 'close' | 'end'> {
  readonly #lease: Lease<CellFileWorker>
  #isOver = false

  private constructor(lease: Lease<CellFileWorker>) {
    this.#lease = lease
  }

  static async from(workers: Pick<FileWorkers, 'take'>, order: LeaseOrder<WorkerKind>): Promise<LoneWorker> {
    return new LoneWorker(await workers.take(order))
  }

  get bystander(): Bystander {
    return this.#lease.worker.bystander
  }

  take({ signal }: LeaseOrder<WorkerKind>): Promise<Lease<CellFileWorker>> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error)
    if (this.#isOver) return Promise.reject(new SandboxError('conflict', 'the file worker was ended, and no other can be started now'))
    return Promise.resolve({ worker: this.#lease.worker, giveBack: () => undefined, drop: () => this.end() })
  }

  close(): void {
    void this.end()
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#lease.drop()
  }
}
