/**
 * The way out of one sandbox. It is opened before any program, outlives every cell that the sandbox has, and ends with it. A cell joins it: from then on
 * what the warden takes in is handed over here. Nothing is decided in the engine.
 */
import type { Warden } from '../channel/index.js'
import { unlessAborted } from '../contract/call-options.js'
import { proxyPort } from '../contract/driver.js'
import type { Egress, EgressDoor } from '../contract/egress.js'
import { SandboxError } from '../contract/errors.js'
import { type NetworkApproval, networkApprovals, type NetworkFacts, type NetworkRecord, type NetworkRules, type NetworkSummary } from '../contract/network.js'
import type { RequestJudge } from '../contract/platform-network.js'
import type { Policy } from '../contract/policy.js'
import type { OneShotNetwork } from '../contract/pools.js'
import { checkNetwork, networkRulesOf } from '../policy/apply.js'
import type { SandboxEvents } from './events.js'
import type { Activity } from './idle.js'

/** What one egress of it did, whatever it has instead of it by now. */
export interface WayStory extends OneShotNetwork {
  /** Ends every connection, so that all is written down. Idempotent. */
  finish(): Promise<NetworkSummary>
}

interface NetworkOrder {
  readonly id: string
  readonly rules: NetworkRules
  readonly source: Pick<EgressDoor, 'open'>
  /** Undefined: what no rule decides is denied. */
  readonly onRequest: RequestJudge | undefined
}

/** The sandbox that it is of, once there is one. */
interface NetworkListener {
  readonly activity: Pick<Activity, 'touch'>
  readonly events: Pick<SandboxEvents, 'tell'>
  /** Doors were moved: liners that were made ahead have those of before. */
  onMoved(): Promise<void>
}

type Doors = Pick<Warden, 'onConnection' | 'onQuery' | 'listen'>

/** More cannot be listened at; the rest is for the proxy alone. */
const mostDirectPorts = 64
const dnsPort = 53
/** What a program has closed by its end is told of after that; no longer than this is waited for it. */
const farewellMs = 250

export class WayOut {
  readonly #order: NetworkOrder
  readonly #told: { listener?: NetworkListener }
  #rules: NetworkRules
  #egress: Egress
  #doors: Doors | undefined
  #isDirect = false
  #isClosed = false

  private constructor(order: NetworkOrder, { told, egress }: { readonly told: { listener?: NetworkListener }; readonly egress: Egress }) {
    this.#order = order
    this.#rules = order.rules
    this.#told = told
    this.#egress = egress
  }

  static async open(order: NetworkOrder): Promise<WayOut> {
    const told = {}
    return new WayOut(order, { told, egress: await openEgress(order, told) })
  }

  /** Another one in its place, under this id and with nothing of what was before: for the next run in the same cell. */
  async renew({ id, onRequest }: Pick<NetworkOrder, 'id' | 'onRequest'>): Promise<void> {
    const before = this.#egress
    const next = await openEgress({ ...this.#order, id, onRequest, rules: this.#rules }, this.#told)
    if (this.#isClosed) {
      await next.close()
      throw new SandboxError('closed', `sandbox ${id} was closed`)
    }
    this.#egress = next
    const hasMoved = this.#isDirect && String(next.ports) !== String(before.ports)
    await before.close()
    if (!hasMoved) return
    this.#listen()
    await this.#told.listener?.onMoved()
  }

  /** Of whoever it is for now: begun before any program of theirs. */
  story(): WayStory {
    const egress = this.#egress
    return {
      log: egress.log(),
      summary: () => Promise.resolve(egress.summary()),
      finish: async () => {
        await egress.close({ graceMs: farewellMs })
        return egress.summary()
      },
    }
  }

  /** Of a cell in which nothing has run yet. */
  join(doors: Doors, { direct }: { readonly direct: boolean }): void {
    this.#doors = doors
    this.#isDirect = direct
    doors.onConnection((connection) => this.#egress.accept(connection))
    doors.onQuery((query) => this.#egress.answer(query))
    this.#listen()
  }

  /** Of the cell that its sandbox has instead, which is like the first. */
  rejoin(doors: Doors): void {
    this.join(doors, { direct: this.#isDirect })
  }

  /** There is one sandbox to be told. */
  tell(listener: NetworkListener): void {
    this.#told.listener = listener
  }

  /** Other rules, within what the policy allows. Throws SandboxError('invalid') naming the field, and then those before hold. */
  change(input: unknown, policy: Policy): ReturnType<typeof checkNetwork> {
    const checked = checkNetwork(input, policy)
    const rules = networkRulesOf(checked.network, policy) as NetworkRules
    this.#egress.update(rules)
    this.#rules = rules
    this.#listen()
    return checked
  }

  /** Whether its cell may have a door at this port, instead of a program. */
  mayListenAt(port: number): boolean {
    return port === proxyPort || (this.#isDirect && (port === dnsPort || this.directPorts.includes(port)))
  }

  log(signal: AbortSignal | undefined): AsyncIterable<NetworkRecord> {
    return this.#egress.log(signal)
  }

  summary(): NetworkSummary {
    return this.#egress.summary()
  }

  /** Of programs that are over: what they left under way has as long to end by itself as what a one-shot leaves. */
  async settled(signal: AbortSignal | undefined): Promise<void> {
    await unlessAborted(this.#egress.settled(farewellMs), signal)
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#egress.close()
  }

  #listen(): void {
    if (this.#isDirect) this.#doors?.listen(this.directPorts)
  }

  /** At which a cell and its liners listen for direct connections. */
  get directPorts(): readonly number[] {
    return this.#isDirect ? this.#egress.ports.slice(0, mostDirectPorts) : []
  }
}

async function openEgress({ id, rules, source, onRequest }: NetworkOrder, told: { readonly listener?: NetworkListener }): Promise<Egress> {
  const egress = await source.open({
    sandbox: id,
    rules,
    onTraffic: () => told.listener?.activity.touch(),
    ...(onRequest && { onRequest: (facts) => judged(onRequest, facts) }),
  })
  void tellDenied(egress, told)
  return egress
}

export function noWayOut(id: string): never {
  throw new SandboxError('conflict', `sandbox ${id} was created without a network, and never gets one`, { hint: 'Sandbox.create({ network: { allow: [] } })' })
}

/** Whatever is no approval denies. */
async function judged(judge: RequestJudge, facts: NetworkFacts): Promise<NetworkApproval> {
  try {
    const answer = await judge(facts)
    return networkApprovals.includes(answer) ? answer : 'deny'
  } catch {
    return 'deny'
  }
}

async function tellDenied(egress: Egress, told: { readonly listener?: NetworkListener }): Promise<void> {
  for await (const record of egress.log())
    if (record.verdict === 'denied') told.listener?.events.tell({ type: 'denied', reason: `${record.host}:${record.port}: ${record.reason}`, attempt: record })
}
