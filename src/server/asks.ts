/** Questions about the network that only the caller can answer: put to whoever reads them, and denied when nobody answers in time. */
import { SandboxError } from '../contract/errors.js'
import type { NetworkApproval, NetworkFacts } from '../contract/network.js'
import type { RequestJudge } from '../contract/platform-network.js'
import { randomName } from './held.js'

const answerMs = 60_000
/** Of one sandbox, at once. */
const mostPending = 256

export interface Ask {
  readonly type: 'ask'
  readonly ask: string
  readonly facts: NetworkFacts
  readonly [key: string]: unknown
}

export interface AskListener {
  readonly onAsk: (ask: Ask) => void
  /** Nothing more will be asked. */
  readonly onEnd: () => void
}

interface Pending {
  readonly ask: Ask
  readonly answer: (approval: NetworkApproval) => void
}

/** Those of one sandbox. */
export class Asks {
  readonly #pending = new Map<string, Pending>()
  readonly #listeners = new Set<AskListener>()
  #isOver = false

  /** For the platform. */
  readonly judge: RequestJudge = (facts) => {
    if (this.#isOver || this.#pending.size >= mostPending) return 'deny'
    return new Promise((resolve) => {
      const ask: Ask = { type: 'ask', ask: randomName(), facts }
      const timer = setTimeout(() => this.#pending.get(ask.ask)?.answer('deny'), answerMs)
      this.#pending.set(ask.ask, {
        ask,
        answer: (approval) => {
          clearTimeout(timer)
          this.#pending.delete(ask.ask)
          resolve(approval)
        },
      })
      for (const { onAsk } of this.#listeners) onAsk(ask)
    })
  }

  /** Throws SandboxError('not-found') when nothing was asked, or it was answered. */
  answer(name: string, approval: NetworkApproval): void {
    const pending = this.#pending.get(name)
    if (!pending) throw new SandboxError('not-found', 'nothing was asked, or it is answered already')
    pending.answer(approval)
  }

  /** Those that wait, and those to come, until what this returns is called. */
  listen(listener: AskListener): () => void {
    if (this.#isOver) listener.onEnd()
    else this.#listeners.add(listener)
    for (const { ask } of this.#pending.values()) listener.onAsk(ask)
    return () => this.#listeners.delete(listener)
  }

  /** Nobody answers any more. */
  end(): void {
    this.#isOver = true
    for (const { answer } of [...this.#pending.values()]) answer('deny')
    for (const { onEnd } of this.#listeners) onEnd()
    this.#listeners.clear()
  }
}
