import { checkCallOptions } from '../contract/call-options.js'
import type { ListenOptions, PlatformEvent, PlatformEvents } from '../contract/events.js'
import type { PauseOptions, PlatformLife, SandboxEvent } from '../contract/lifetimes.js'
import type { NetworkApproval, NetworkFacts, NetworkInput, NetworkRecord, NetworkSummary } from '../contract/network.js'
import type { PlatformNetwork, RequestJudge, SummaryOptions } from '../contract/platform-network.js'
import type { CallOptions, SandboxInfo } from '../contract/platform.js'
import { networkApprovals } from '../contract/network-words.js'
import type { EventStream } from './event-stream.js'
import type { Wire } from './wire.js'

/** Opened at once, so that nothing is missed between the call and the first time that it is read. It keeps no process alive. */
function opened<Event>(stream: Promise<EventStream>): AsyncIterable<Event> {
  const begun = stream.then((found) => {
    found.unref()
    return found
  })
  begun.catch(() => undefined)
  return {
    [Symbol.asyncIterator]: () => {
      let events: AsyncIterableIterator<Event, undefined> | undefined
      const find = async (): Promise<AsyncIterableIterator<Event, undefined>> => (events ??= (await begun).all<Event>())
      return {
        next: async () => (await find()).next(),
        return: async () => {
          await (await find()).return?.()
          return { done: true, value: undefined }
        },
      }
    },
  }
}

export class ClientLife implements PlatformLife {
  readonly #wire: Wire

  constructor(wire: Wire) {
    this.#wire = wire
  }

  async pause(id: string, options: PauseOptions = {}): Promise<SandboxInfo> {
    const { signal, memory } = checkCallOptions(options, ['signal', 'memory'])
    return (await this.#wire.call('sandboxes.pause', { params: { id }, body: { memory }, signal })) as unknown as SandboxInfo
  }

  async resume(id: string, options: CallOptions = {}): Promise<SandboxInfo> {
    const { signal } = checkCallOptions(options)
    return (await this.#wire.call('sandboxes.resume', { params: { id }, signal })) as unknown as SandboxInfo
  }

  async extend(id: string, duration: number | string, options: CallOptions = {}): Promise<SandboxInfo> {
    const { signal } = checkCallOptions(options)
    return (await this.#wire.call('sandboxes.extend', { params: { id }, body: { duration }, signal })) as unknown as SandboxInfo
  }

  async setLifetime(id: string, duration: number | string, options: CallOptions = {}): Promise<SandboxInfo> {
    const { signal } = checkCallOptions(options)
    return (await this.#wire.call('sandboxes.lifetime', { params: { id }, body: { duration }, signal })) as unknown as SandboxInfo
  }

  events(id: string, options: CallOptions = {}): AsyncIterable<SandboxEvent> {
    const { signal } = checkCallOptions(options)
    return opened(this.#wire.stream('sandboxes.events', { params: { id }, signal }))
  }
}

export class ClientEvents implements PlatformEvents {
  readonly #wire: Wire

  constructor(wire: Wire) {
    this.#wire = wire
  }

  listen(options: ListenOptions = {}): AsyncIterable<PlatformEvent> {
    const { signal, types, ...rest } = checkCallOptions(options, ['signal', 'after', 'types', 'sandbox', 'agent', 'tenant'])
    return opened(this.#wire.stream('house.events', { params: {}, query: { ...rest, ...(types && { types: types.join(',') }) }, signal }))
  }
}

export class ClientNetwork implements PlatformNetwork {
  readonly #wire: Wire

  constructor(wire: Wire) {
    this.#wire = wire
  }

  async update(id: string, network: Exclude<NetworkInput, false>, options: CallOptions = {}): Promise<SandboxInfo> {
    const { signal } = checkCallOptions(options)
    return (await this.#wire.call('network.update', { params: { id }, body: network, what: 'network', signal })) as unknown as SandboxInfo
  }

  log(id: string, options: CallOptions = {}): AsyncIterable<NetworkRecord> {
    const { signal } = checkCallOptions(options)
    return opened(this.#wire.stream('network.log', { params: { id }, signal }))
  }

  async summary(id: string, options: SummaryOptions = {}): Promise<NetworkSummary> {
    const { signal, settled } = checkCallOptions(options, ['signal', 'settled'])
    return (await this.#wire.call('network.summary', { params: { id }, query: { settled }, signal })) as NetworkSummary
  }
}

interface Ask {
  readonly type: 'ask'
  readonly ask: string
  readonly facts: NetworkFacts
}

/** Answers what the server asks about a sandbox's network, until that is over. */
export async function answerAsks(wire: Wire, id: string, judge: RequestJudge): Promise<void> {
  const stream = await wire.stream('network.asks', { params: { id } })
  stream.unref()
  for await (const { ask, facts } of stream.all<Ask>()) {
    void approvalOf(judge, facts)
      .then((approval) => wire.call('network.approve', { params: { id, ask }, body: { approval } }))
      .catch(() => undefined)
  }
}

/** What it throws, and anything but an approval, denies. */
export async function approvalOf(judge: RequestJudge, facts: NetworkFacts): Promise<NetworkApproval> {
  try {
    const approval = await judge(facts)
    return networkApprovals.includes(approval) ? approval : 'deny'
  } catch {
    return 'deny'
  }
}
