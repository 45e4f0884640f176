import { checkCallOptions } from '../contract/call-options.js'
import type { NetworkInput, NetworkRecord, NetworkSummary } from '../contract/network.js'
import type { CallOptions, SandboxInfo } from '../contract/platform.js'
import type { PlatformNetwork, SummaryOptions } from '../contract/platform-network.js'
import type { FindSandbox } from './life-facet.js'

/** The ways out of sandboxes, as the platform's doors see them. */
export class NetworkFacet implements PlatformNetwork {
  readonly #find: FindSandbox

  constructor(find: FindSandbox) {
    this.#find = find
  }

  async update(id: string, network: Exclude<NetworkInput, false>, options: CallOptions = {}): Promise<SandboxInfo> {
    checkCallOptions(options).signal?.throwIfAborted()
    return (await this.#find(id)).changeNetwork(network)
  }

  log(id: string, options: CallOptions = {}): AsyncIterable<NetworkRecord> {
    const { signal } = checkCallOptions(options)
    // Begun at once, so that nothing is missed between the call and the first time that it is read.
    const found = this.#find(id).then(({ network }) => network.log(signal))
    found.catch(() => undefined)
    return {
      async *[Symbol.asyncIterator]() {
        signal?.throwIfAborted()
        yield* await found
      },
    }
  }

  async summary(id: string, options: SummaryOptions = {}): Promise<NetworkSummary> {
    const { signal, settled = false } = checkCallOptions(options, ['signal', 'settled'])
    signal?.throwIfAborted()
    const { network } = await this.#find(id)
    if (settled) await network.settled(signal)
    return network.summary()
  }
}
