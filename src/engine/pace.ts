import { setImmediate as turn } from 'node:timers/promises'

/** What takes longer than this at a stretch keeps everyone else of the process waiting. */
const stretchMs = 5

/** For work that whoever asks can make long: so often it lets others have a turn. */
export class Pace {
  #since = performance.now()

  /** Nothing, or what is to be waited for. */
  get pause(): Promise<void> | undefined {
    return performance.now() - this.#since < stretchMs ? undefined : this.#turn()
  }

  async #turn(): Promise<void> {
    await turn()
    this.#since = performance.now()
  }
}
