/** How many calls may be at work at once; the others wait for their turn, as many as may wait. */
import { SandboxError } from '../contract/errors.js'

export class Turns {
  readonly #most: number
  readonly #mostWaiting: number
  readonly #waiting: (() => void)[] = []
  #busy = 0

  constructor({ most, mostWaiting }: { readonly most: number; readonly mostWaiting: number }) {
    this.#most = most
    this.#mostWaiting = mostWaiting
  }

  async take<T>(act: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#begin(signal)
    try {
      return await act()
    } finally {
      // The place is handed over, so that nobody comes between.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#busy -= 1
    }
  }

  async #begin(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#busy < this.#most) {
      this.#busy += 1
      return
    }
    if (this.#waiting.length >= this.#mostWaiting) throw new SandboxError('busy', `${this.#busy} calls are under way and ${this.#waiting.length} wait`)
    await this.#turn(signal)
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const next = (): void => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(next), 1)
        reject(signal.reason)
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#waiting.push(next)
    })
  }
}
