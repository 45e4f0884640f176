import { SandboxError } from '../contract/errors.js'
import type { Actor } from '../contract/tenants.js'
import { randomName } from './held.js'

const lifeMs = 30_000
const most = 10_000

interface Issued {
  readonly actor: Actor
  readonly expiresMs: number
}

/** What a browser opens a WebSocket with, since it can send no header there: good once, and soon no more. */
export class Tickets {
  readonly #issued = new Map<string, Issued>()
  readonly #isAccepted: (key: string) => Promise<boolean>

  /** `isAccepted`: whether a key of this id would be accepted now. */
  constructor(isAccepted: (key: string) => Promise<boolean>) {
    this.#isAccepted = isAccepted
  }

  issue(actor: Actor): { readonly ticket: string; readonly expiresAt: string } {
    const now = Date.now()
    for (const [ticket, { expiresMs }] of this.#issued) if (expiresMs <= now || this.#issued.size >= most) this.#issued.delete(ticket)
    const ticket = randomName()
    this.#issued.set(ticket, { actor, expiresMs: now + lifeMs })
    return { ticket, expiresAt: new Date(now + lifeMs).toISOString() }
  }

  /** Throws SandboxError('unauthorized') for one that is not good, or not any more. */
  async redeem(ticket: string): Promise<Actor> {
    const found = this.#issued.get(ticket)
    this.#issued.delete(ticket)
    if (!found || found.expiresMs <= Date.now() || !(await this.#isAccepted(found.actor.key)))
      throw new SandboxError('unauthorized', 'the ticket is none, was used, or is too old')
    return found.actor
  }
}
