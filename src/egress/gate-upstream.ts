import type { Socket } from 'node:net'
import type { SharedBudget } from '../contract/egress.js'
import type { Address, Host, NetworkLimits } from '../contract/network.js'
import { exactly } from '../contract/quantities.js'
import { Bucket, Budget, type Meter } from './buckets.js'
import type { Clock } from './clock.js'
import { EgressError } from './egress-error.js'
import type { Upstream } from './gate-types.js'
import type { Intake } from './intake.js'
import { MeteredStream } from './metered-stream.js'
import type { Place } from './places.js'

/** What all connections of a sandbox share: made anew with new limits, except that what was used of a budget stays used. */
export class SharedLimits {
  readonly #clock: Clock
  #limits: NetworkLimits
  #up: readonly Bucket[] = []
  #down: readonly Bucket[] = []
  #budget: Budget | undefined
  #used = 0
  readonly #outer: readonly { readonly budget: SharedBudget; readonly words: string }[]

  /** `outer`: what it shares with other sandboxes. */
  constructor(limits: NetworkLimits, { clock, outer }: { readonly clock: Clock; readonly outer: SharedBudget | undefined }) {
    this.#clock = clock
    this.#limits = limits
    this.#outer = outer ? [{ budget: outer, words: outer.words }] : []
    this.update(limits)
  }

  update(limits: NetworkLimits): void {
    this.#limits = limits
    const rate = limits.bytesPerSecond
    this.#up = rate === undefined ? [] : [new Bucket(rate, this.#clock)]
    this.#down = rate === undefined ? [] : [new Bucket(rate, this.#clock)]
    this.#budget = limits.bytes === undefined ? undefined : new Budget(limits.bytes - this.#used)
  }

  used(bytes: number): void {
    this.#used += bytes
  }

  /** In words, when nothing more may be carried. */
  get refusal(): string | undefined {
    if (this.#budget?.isSpent === true) return this.#words(this.#limits.bytes ?? 0)
    return this.#outer.find(({ budget }) => budget.leftBytes <= 0)?.words
  }

  #words(bytes: number): string {
    return `the ${exactly('bytes', bytes)} that this sandbox may send and receive are spent`
  }

  /** For one connection. Limits that change later hold for it too. */
  meter(): Meter {
    const { connectionBytesPerSecond: rate, connectionBytes: bytes } = this.#limits
    const own = (): readonly Bucket[] => (rate === undefined ? [] : [new Bucket(rate, this.#clock)])
    const [up, down] = [own(), own()]
    const words = `the ${exactly('bytes', bytes ?? 0)} that one connection may carry are spent`
    const lasting = [...(bytes === undefined ? [] : [{ budget: new Budget(bytes), words }]), ...this.#outer]
    return {
      up: () => [...up, ...this.#up],
      down: () => [...down, ...this.#down],
      budgets: () => (this.#budget === undefined ? lasting : [...lasting, { budget: this.#budget, words: this.#words(this.#limits.bytes ?? 0) }]),
    }
  }
}

export interface UpstreamOrder {
  readonly intake: Intake
  readonly host: Host
  readonly port: number
  readonly pinned: Address
  readonly place: Place
  readonly shared: SharedLimits
  readonly clock: Clock
  readonly idleTimeoutMs: number
  onTraffic(): void
  onClosed(upstream: LiveUpstream): void
}

export class LiveUpstream implements Upstream {
  readonly stream: MeteredStream
  readonly host: Host
  readonly port: number
  readonly pinned: Address
  readonly #order: UpstreamOrder
  /** Requests that are under way on it. */
  readonly users = new Set<{ fail(error: EgressError): void }>()
  #isOpen = true

  constructor(socket: Socket, order: UpstreamOrder) {
    this.#order = order
    this.host = order.host
    this.port = order.port
    this.pinned = order.pinned
    const { intake, shared, clock, idleTimeoutMs } = order
    let counted = 0
    const onTraffic = (): void => {
      const now = this.stream.bytesUp + this.stream.bytesDown
      shared.used(now - counted)
      counted = now
      order.onTraffic()
    }
    this.stream = new MeteredStream(socket, { intake, meter: shared.meter(), clock, idleTimeoutMs, onTraffic })
    // Its users look at it when they use it: an error in between concerns nobody, and must not end the process.
    this.stream.on('error', (error) => this.close(error instanceof EgressError ? error : new EgressError('broken', 'the connection broke off')))
    this.stream.on('close', () => this.close())
  }

  get address(): string {
    return this.pinned.text
  }

  get isOpen(): boolean {
    return this.#isOpen && !this.stream.destroyed && !this.stream.writableEnded && !this.stream.readableEnded
  }

  /** Its place is free from this moment on. Idempotent. */
  close(error?: EgressError): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.stream.destroy(error)
    this.#order.place.free()
    if (error !== undefined) for (const user of this.users) user.fail(error)
    this.#order.onClosed(this)
  }
}
