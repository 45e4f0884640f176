import type { Forward, ForwardOptions } from '../contract/ports.js'

/** The forwards that a handle made to show a port, one for each. */
export class Previews {
  readonly #open: (port: number, options: ForwardOptions) => Promise<Forward>
  readonly #forwards = new Map<number, Promise<Forward>>()

  constructor(open: (port: number, options: ForwardOptions) => Promise<Forward>) {
    this.#open = open
  }

  async url(port: number, options: ForwardOptions): Promise<string> {
    const known = this.#forwards.get(port)
    if (known) return (await known).url
    const opening = this.#open(port, options)
    this.#forwards.set(port, opening)
    try {
      return (await opening).url
    } catch (error) {
      this.#forwards.delete(port)
      throw error
    }
  }
}
