import type { Address, Host, NetworkRules } from '../contract/network.js'
import type { Question } from '../policy/network-decide.js'
import { EgressError } from './egress-error.js'
import type { LiveUpstream } from './gate-upstream.js'
import type { Attempt, Ending, Permit, Upstream } from './gate-types.js'
import type { Place } from './places.js'

export interface PermitOrder {
  readonly attempt: Attempt
  readonly question: Question
  readonly hostText: string
  readonly pinned: Address
  readonly rule: string
  readonly rules: NetworkRules
  readonly terminate: boolean
  /** Either a place that nobody uses yet, or a connection that has one. */
  readonly room: Place | LiveUpstream
  readonly connect: (permit: LivePermit, place: Place) => Promise<LiveUpstream>
  readonly onFinished: (permit: LivePermit, ending: Ending) => void
}

export class LivePermit implements Permit {
  readonly allowed = true
  readonly order: PermitOrder
  readonly #over = new AbortController()
  readonly #timer: NodeJS.Timeout | undefined
  #dialled: Promise<LiveUpstream> | undefined
  #upstream: LiveUpstream | undefined
  #before = { up: 0, down: 0 }
  #isFinished = false

  constructor(order: PermitOrder) {
    this.order = order
    if (!('free' in order.room)) this.#use(order.room)
    const { requestTimeoutMs } = order.rules.limits
    const isRequest = order.attempt.scheme === 'http' || order.attempt.scheme === 'https'
    const timeOut = (): void => this.fail(new EgressError('timed-out', `the request took longer than ${requestTimeoutMs} ms`))
    this.#timer = isRequest ? setTimeout(timeOut, requestTimeoutMs).unref() : undefined
  }

  get host(): Host {
    return this.order.question.host
  }

  get hostText(): string {
    return this.order.hostText
  }

  get port(): number {
    return this.order.attempt.port
  }

  get address(): string {
    return this.order.pinned.text
  }

  get rule(): string {
    return this.order.rule
  }

  get terminate(): boolean {
    return this.order.terminate
  }

  get sni(): 'match' | 'any' {
    return this.order.rules.sni
  }

  get signal(): AbortSignal {
    return this.#over.signal
  }

  dial(): Promise<Upstream> {
    this.#dialled ??= this.#connect()
    return this.#dialled
  }

  async #connect(): Promise<LiveUpstream> {
    if (this.#hasEnded()) throw this.#reason
    const { room, connect } = this.order
    const upstream = 'free' in room ? await connect(this, room) : room
    if (this.#hasEnded() || !upstream.isOpen) {
      if ('free' in room) upstream.close()
      throw this.#reason
    }
    if ('free' in room) this.#use(upstream)
    return upstream
  }

  /** From now on it is not one that only waits to be used again. */
  #use(upstream: LiveUpstream): void {
    this.#upstream = upstream
    this.#before = { up: upstream.stream.bytesUp, down: upstream.stream.bytesDown }
    upstream.users.add(this)
  }

  #hasEnded(): boolean {
    return this.#isFinished || this.signal.aborted
  }

  get #reason(): EgressError {
    return this.signal.reason instanceof EgressError ? this.signal.reason : new EgressError('broken', 'the connection is over')
  }

  /** Ends it; whoever uses it sees the signal. */
  fail(error: EgressError): void {
    if (!this.#isFinished) this.#over.abort(error)
  }

  get upstream(): LiveUpstream | undefined {
    return this.#upstream
  }

  finish(ending: Ending = {}): void {
    if (this.#isFinished) return
    this.#isFinished = true
    clearTimeout(this.#timer)
    const { room, onFinished } = this.order
    const upstream = this.#upstream
    upstream?.users.delete(this)
    if (upstream === undefined && 'free' in room) room.free()
    const counted = upstream && { bytesUp: upstream.stream.bytesUp - this.#before.up, bytesDown: upstream.stream.bytesDown - this.#before.down }
    const failure = this.signal.aborted && ending.verdict === undefined ? failureOf(this.signal.reason) : {}
    onFinished(this, { bytesUp: 0, bytesDown: 0, ...counted, ...failure, ...ending })
  }
}

/** What became of something that was allowed at first. */
function failureOf(reason: unknown): Pick<Ending, 'verdict' | 'reason'> {
  if (!(reason instanceof EgressError)) return { verdict: 'failed', reason: 'it was called off' }
  const isDenied = ['not-allowed', 'blocked', 'private', 'budget'].includes(reason.code)
  return { verdict: isDenied ? 'denied' : 'failed', reason: reason.message }
}
