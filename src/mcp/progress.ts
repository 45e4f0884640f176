import type { ServerContext } from '@modelcontextprotocol/server'
import { wellFormed } from '../contract/path-text.js'

const betweenMs = 250
const mostCharacters = 400

/** Tells a client that asked for it what is being printed: the latest lines, a few times a second. */
export class Progress {
  readonly #context: ServerContext
  readonly #token: string | number | undefined
  #latest = ''
  #count = 0
  #toldAt = 0

  constructor(context: ServerContext) {
    this.#context = context
    this.#token = context.mcpReq._meta?.progressToken
  }

  tell(printed: string): void {
    if (this.#token === undefined || printed === '') return
    this.#latest = (this.#latest + printed).slice(-mostCharacters)
    this.#count += printed.length
    const now = performance.now()
    if (now - this.#toldAt < betweenMs) return
    this.#toldAt = now
    const params = { progressToken: this.#token, progress: this.#count, message: wellFormed(this.#latest.trimEnd()) }
    this.#latest = ''
    // Nobody may be listening any more; then it is nobody's loss.
    this.#context.mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined)
  }
}
