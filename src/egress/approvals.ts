/** What no rule decides, asked of whoever made the sandbox. Nobody who answers late, wrongly or not at all has allowed anything. */
import { type NetworkApproval, type NetworkFacts, networkApprovals } from '../contract/network.js'

export interface ApprovalsOrder {
  readonly onRequest: ((facts: NetworkFacts) => Promise<NetworkApproval>) | undefined
  readonly timeoutMs: number
  readonly mostWaiting: number
}

export class Approvals {
  readonly #order: ApprovalsOrder
  /** Those that hold for the sandbox, as `host:port`. */
  readonly #granted = new Set<string>()
  /** One question at a time about the same host and port: its answer may spare the others. */
  readonly #pending = new Map<string, Promise<unknown>>()
  #waiting = 0
  /** Counts replacements of the rules: an answer to a question of before grants nothing for later. */
  #era = 0

  constructor(order: ApprovalsOrder) {
    this.#order = order
  }

  get canAsk(): boolean {
    return this.#order.onRequest !== undefined
  }

  isGranted(key: string): boolean {
    return this.#granted.has(key)
  }

  forget(): void {
    this.#granted.clear()
    this.#era++
  }

  /** Undefined when allowed, otherwise why not. Never throws. */
  async ask(key: string, facts: NetworkFacts, signal: AbortSignal): Promise<string | undefined> {
    if (!this.canAsk) return 'nobody can be asked'
    if (this.#waiting >= this.#order.mostWaiting) return 'too many attempts wait for an answer already'
    this.#waiting++
    const before = this.#pending.get(key) ?? Promise.resolve()
    const turn = before.then(() => (this.isGranted(key) ? undefined : this.#askNow(key, facts, signal)))
    this.#pending.set(key, turn)
    try {
      return await turn
    } finally {
      this.#waiting--
      if (this.#pending.get(key) === turn) this.#pending.delete(key)
    }
  }

  async #askNow(key: string, facts: NetworkFacts, signal: AbortSignal): Promise<string | undefined> {
    const era = this.#era
    const { answer, why } = await this.#answer(facts, signal)
    if (answer === 'sandbox' && era === this.#era) this.#granted.add(key)
    return answer === undefined ? why : answer === 'deny' ? 'it was declined' : undefined
  }

  async #answer(facts: NetworkFacts, signal: AbortSignal): Promise<Answered> {
    const { onRequest, timeoutMs } = this.#order
    if (signal.aborted) return gone
    let stop = (): void => undefined
    const over = new Promise<Answered>((resolve) => {
      const timer = setTimeout(() => resolve({ why: 'nobody answered in time' }), timeoutMs).unref()
      const abort = (): void => resolve(gone)
      signal.addEventListener('abort', abort, { once: true })
      stop = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', abort)
      }
    })
    try {
      return await Promise.race([Promise.resolve(onRequest?.(facts)).then(understood), over])
    } catch {
      return { why: 'asking for it failed' }
    } finally {
      stop()
    }
  }
}

interface Answered {
  readonly answer?: NetworkApproval
  readonly why?: string
}

const gone: Answered = { why: 'nobody waits for it any more' }

function understood(answer: unknown): Answered {
  const known = networkApprovals.find((each) => each === answer)
  return known === undefined ? { why: 'the answer could not be understood' } : { answer: known }
}
