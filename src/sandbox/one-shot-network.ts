import { SandboxError } from '../contract/errors.js'
import type { NetworkRecord, NetworkSummary } from '../contract/network.js'
import type { OneShotNetwork } from '../contract/pools.js'

class Settling<Value> {
  readonly settled: Promise<Value>
  resolve!: (value: Value) => void
  reject!: (error: unknown) => void

  constructor() {
    this.settled = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
    // Whoever awaits the run is told; nobody has to ask for its network.
    this.settled.catch(() => undefined)
  }
}

/** The network of a one-shot, which is there once that has begun. Where its sandbox has none, every call is refused with 'conflict'. */
export class RunNetwork {
  readonly #settle = new Settling<OneShotNetwork | undefined>()
  #last: NetworkSummary | undefined

  /** All that it does, one record a connection or request when it is over, until the run is; for one reader, who is told how many it missed when it is slow. */
  log(): AsyncIterable<NetworkRecord> {
    const { settled: begun } = this.#settle
    return {
      async *[Symbol.asyncIterator]() {
        yield* (await begun)?.log ?? none()
      },
    }
  }

  /** So far, and once the run is over of all of it. */
  async summary(): Promise<NetworkSummary> {
    const begun = await this.#settle.settled
    return this.#last ?? begun?.summary() ?? none()
  }

  /** For the one who starts the run: settles as that does. */
  async follow<Begun>(start: Promise<Begun>, networkOf: (begun: Begun) => OneShotNetwork | undefined): Promise<Begun> {
    try {
      const begun = await start
      this.#settle.resolve(networkOf(begun))
      return begun
    } catch (error) {
      this.#settle.reject(error)
      throw error
    }
  }

  /** For the one who ends it. */
  conclude(summary: NetworkSummary | undefined): void {
    this.#last = summary
  }
}

function none(): never {
  throw new SandboxError('conflict', 'its sandbox has no network', { hint: "Sandbox.run(command, { sandbox: { network: { allow: ['example.org'] } } })" })
}
