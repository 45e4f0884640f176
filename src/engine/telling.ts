import type { EventOrigin, EventSink, PlatformEventFacts } from '../contract/events.js'
import type { NetworkRecord } from '../contract/network.js'
import type { PlatformProcess, SandboxInfo } from '../contract/platform.js'
import type { Fresh } from '../contract/pools.js'
import type { EventFacts } from './events.js'
import { eventsOf } from './events-of-run.js'
import type { LiveSandbox } from './live-sandbox.js'
import type { Makers } from './making.js'

/** What is written down of a sandbox's network may be told a moment after its end. */
const mostGone = 1024

type Story = Exclude<EventFacts, { readonly type: 'missed' }>

/** What happens to sandboxes that are somebody's, told to those who listen to the whole platform. */
export class Telling {
  readonly #sink: EventSink
  readonly #origins = new Map<string, EventOrigin>()
  /** Those of them that are over, the oldest first. */
  readonly #gone: string[] = []

  constructor(sink: EventSink) {
    this.#sink = sink
  }

  tell(facts: PlatformEventFacts): void {
    this.#sink.tell(facts)
  }

  /** From now on, until it is over. */
  show(sandbox: LiveSandbox): void {
    const { info } = sandbox
    this.#begin(info, 'cell')
    sandbox.life.events.onTold = (facts) => {
      // Denials come with all else that is written down of the network.
      if (facts.type !== 'denied' && facts.type !== 'missed') this.#told(info.id, facts)
    }
  }

  /** A run in a liner, which is a sandbox to whoever asked for it; what is returned tells of its end. */
  lined(info: SandboxInfo, program: Pick<PlatformProcess, 'pid' | 'ended'>): () => void {
    this.#begin(info, 'liner')
    const ended = program.ended.then(
      (ending) => eventsOf({ pid: program.pid, tag: undefined, ending }).forEach((facts) => this.#told(info.id, facts as Story)),
      () => undefined,
    )
    return () => void ended.then(() => this.#told(info.id, { type: 'closed', code: 'closed', reason: `sandbox ${info.id} was closed` }))
  }

  /** The same with a way out of which everything that is written down is told. */
  withRecords<Parts extends Pick<Makers, 'egress'>>(parts: Parts): Parts {
    const { egress: source } = parts
    if (!source) return parts
    const open: typeof source.open = async (order) => {
      const egress = await source.open(order)
      void this.#tellRecords(egress.log())
      return egress
    }
    return { ...parts, egress: { open, certificates: () => source.certificates(), close: () => source.close() } }
  }

  #begin(info: SandboxInfo, fresh: Fresh): void {
    const { id, driver, tier, pool, spec } = info
    const { name, agent, template } = spec
    const origin = { sandbox: id, ...(name !== undefined && { name }), ...(agent !== undefined && { agent }) }
    this.#origins.set(id, origin)
    this.tell({ ...origin, type: 'created', driver, tier, template, fresh, ...(pool && { pool }) })
  }

  #told(id: string, facts: Story): void {
    this.tell({ ...this.#origin(id), ...facts })
    if (facts.type !== 'closed' || this.#gone.push(id) <= mostGone) return
    const oldest = this.#gone.shift()
    if (oldest !== undefined) this.#origins.delete(oldest)
  }

  #origin(id: string): EventOrigin {
    return this.#origins.get(id) ?? { sandbox: id }
  }

  async #tellRecords(log: AsyncIterable<NetworkRecord>): Promise<void> {
    for await (const attempt of log) {
      const origin = this.#origin(attempt.sandbox)
      if (attempt.verdict === 'denied') this.tell({ ...origin, type: 'denied', reason: `${attempt.host}:${attempt.port}: ${attempt.reason}`, attempt })
      else this.tell({ ...origin, type: 'connected', attempt })
    }
  }
}
