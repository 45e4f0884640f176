import { unlessAborted } from '../contract/call-options.js'
import type { Forward, ForwardOptions } from '../contract/ports.js'

/** The forwards that a handle made to show a port, one for each. */
export class Previews {
  readonly #open: (port: number, options: ForwardOptions) => Promise<Forward>
  readonly #forwards = new Map<number, Opening>()

  constructor(open: (port: number, options: ForwardOptions) => Promise<Forward>) {
    this.#open = open
  }

  async url(port: number, options: ForwardOptions): Promise<string> {
    const known = this.#forwards.get(port)
    if (known) return this.#join(known, port, options)
    const opening = { forward: this.#open(port, options), signal: options.signal }
    this.#forwards.set(port, opening)
    try {
      return (await opening.forward).url
    } catch (error) {
      this.#forwards.delete(port)
      throw error
    }
  }

  /** What somebody else began may be called off by them: then it is begun anew. */
  async #join({ forward, signal }: Opening, port: number, options: ForwardOptions): Promise<string> {
    try {
      return (await unlessAborted(forward, options.signal)).url
    } catch (error) {
      if (options.signal?.aborted === true || signal?.aborted !== true) throw error
      return this.url(port, options)
    }
  }
}

interface Opening {
  readonly forward: Promise<Forward>
  /** Of whoever asked first. */
  readonly signal: AbortSignal | undefined
}
