import type { Clock, Waiting } from './deadline.js'

/** The time of what runs in a sandbox: it stands still while the sandbox does. */
export class LifetimeClock implements Clock {
  readonly #waiting = new Set<Waiting>()
  #stoppedAt: number | undefined
  #missedMs = 0

  get isStopped(): boolean {
    return this.#stoppedAt !== undefined
  }

  now(): number {
    return (this.#stoppedAt ?? performance.now()) - this.#missedMs
  }

  join(waiting: Waiting): void {
    this.#waiting.add(waiting)
  }

  leave(waiting: Waiting): void {
    this.#waiting.delete(waiting)
  }

  stop(): void {
    if (this.#stoppedAt !== undefined) return
    this.#stoppedAt = performance.now()
    for (const waiting of this.#waiting) waiting.hold()
  }

  goOn(): void {
    if (this.#stoppedAt === undefined) return
    this.#missedMs += performance.now() - this.#stoppedAt
    this.#stoppedAt = undefined
    for (const waiting of [...this.#waiting]) waiting.goOn()
  }
}
