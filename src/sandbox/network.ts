import { checkCallOptions } from '../contract/call-options.js'
import type { NetworkInput, NetworkRecord, NetworkSummary } from '../contract/network.js'
import type { CallOptions, SandboxInfo } from '../contract/platform.js'
import type { PlatformNetwork } from '../contract/platform-network.js'

/** The way out of a sandbox that was created with one; of any other, every call is refused with 'conflict'. */
export class SandboxNetwork {
  readonly #network: PlatformNetwork
  readonly #id: string

  constructor(network: PlatformNetwork, id: string) {
    this.#network = network
    this.#id = id
  }

  /** Other rules instead of those that hold, from now on. Connections that they would not allow are ended. */
  async update(network: Exclude<NetworkInput, false>, options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#network.update(this.#id, network, checkCallOptions(options))
  }

  /** What its programs did from now on, one record a connection or request when it is over: `for await (const record of sandbox.network.log())`. */
  log(options: CallOptions = {}): AsyncIterable<NetworkRecord> {
    return this.#network.log(this.#id, checkCallOptions(options))
  }

  /** Totals since it was created, and the ten latest records. */
  async summary(options: CallOptions = {}): Promise<NetworkSummary> {
    return this.#network.summary(this.#id, checkCallOptions(options))
  }
}
