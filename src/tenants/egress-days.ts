import { SandboxError } from '../contract/errors.js'
import type { TenantStore } from './store.js'

const flushAfterMs = 1000
const dayMs = 86_400_000

interface Day {
  readonly day: string
  /** In the store. */
  kept: number
  /** Not there yet. */
  pending: number
}

/** What tenants sent and received today. It is written down every second: what was counted in the last one is lost when the process is killed. */
export class EgressDays {
  readonly #store: TenantStore
  readonly #now: () => number
  readonly #days = new Map<string, Day>()
  #timer: NodeJS.Timeout | undefined
  #lastWritten: Promise<void> = Promise.resolve()

  constructor(store: TenantStore, now: () => number) {
    this.#store = store
    this.#now = now
  }

  add(tenant: string, bytes: number): void {
    this.#today(tenant).pending += bytes
    if (bytes > 0) this.#timer ??= setTimeout(() => void this.#flushLater(), flushAfterMs).unref()
  }

  used(tenant: string): number {
    const { kept, pending } = this.#today(tenant)
    return kept + pending
  }

  msUntilMidnight(): number {
    return dayMs - (this.#now() % dayMs)
  }

  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const writing = async (): Promise<void> => {
      for (const [tenant, day] of this.#days) await this.#write(tenant, day)
    }
    // One after the other: what is pending is written once.
    const written = this.#lastWritten.then(writing)
    this.#lastWritten = written.catch(() => undefined)
    await written
  }

  async #write(tenant: string, day: Day): Promise<void> {
    const bytes = day.pending
    if (bytes === 0) return
    // Another process may have counted too. Until it is written it counts as pending: at no moment as nothing.
    day.kept = await this.#store.addEgress({ tenant, day: day.day, bytes })
    day.pending -= bytes
  }

  async #flushLater(): Promise<void> {
    await this.flush().catch((error: unknown) => {
      // It stays counted here, and is written when there is room.
      if (!(error instanceof SandboxError)) throw error
      this.#timer ??= setTimeout(() => void this.#flushLater(), flushAfterMs).unref()
    })
  }

  #today(tenant: string): Day {
    const day = new Date(this.#now()).toISOString().slice(0, 10)
    const known = this.#days.get(tenant)
    if (known?.day === day) return known
    // What yesterday left unwritten is of no use to today.
    const fresh = { day, kept: this.#store.egress(tenant, day), pending: 0 }
    this.#days.set(tenant, fresh)
    return fresh
  }
}
