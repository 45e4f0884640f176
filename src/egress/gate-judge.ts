/** What decides about an attempt: the rules as they are now, approvals, the resolver, and the names that addresses stand for. */
import type { Address, Host, NetworkFacts, NetworkRules } from '../contract/network.js'
import { isIn } from '../policy/network-address.js'
import { addressRefusal, decideAll, isNameKnown, type Question } from '../policy/network-decide.js'
import { hostText, parseHost } from '../policy/network-host.js'
import { readingsOf } from '../policy/network-reserved.js'
import type { Approvals } from './approvals.js'
import { EgressError } from './egress-error.js'
import type { Refusal } from './gate-denial.js'
import type { Target } from './gate-types.js'
import { isSynthetic, SyntheticNames } from './names.js'
import type { Resolver } from './resolver.js'

/** Somewhere that an attempt may go, by a rule or by an approval. */
export interface Way {
  readonly rule: string
  /** Of an approval: the rules under which it was asked for. */
  readonly era?: number
}

interface JudgeOrder {
  readonly rules: NetworkRules
  readonly approvals: Approvals
  readonly resolver: Resolver
  readonly isOwn: (address: Address) => boolean
}

export class Judge {
  readonly names = new SyntheticNames()
  readonly #order: JudgeOrder
  #rules: NetworkRules
  /** Counts replacements of the rules. */
  #era = 0

  constructor(order: JudgeOrder) {
    this.#order = order
    this.#rules = order.rules
  }

  get rules(): NetworkRules {
    return this.#rules
  }

  get canAsk(): boolean {
    return this.#order.approvals.canAsk
  }

  /** What was approved before is not approved under other rules. */
  update(rules: NetworkRules): void {
    this.#rules = rules
    this.#era++
    this.#order.approvals.forget()
  }

  hostOf({ host: text, port }: Pick<Target, 'host' | 'port'>): Host | Refusal {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) return { code: 'unparsable', why: 'there is no such port' }
    const host = parseHost(text)
    if (host === undefined) return { code: 'unparsable', why: 'the host is neither a name nor an address that can be read in one way only' }
    if (host.kind === 'name' || !isSynthetic(host.address) || this.#isNamed(host.address)) return host
    const name = this.names.nameAt(host.address)
    if (name !== undefined) return { kind: 'name', name }
    return { code: 'private', rule: 'private', why: `${host.address.text} stands for no name, or no longer: resolve it again` }
  }

  wayOf(question: Question): Way | Refusal {
    const decision = decideAll(this.#rules, question)
    if (decision.verdict === 'allow') return { rule: `allow ${decision.rule.text}` }
    if (decision.verdict === 'deny') return decision
    return this.#order.approvals.isGranted(keyOf(question)) ? this.#byApproval : { code: 'not-allowed', why: 'no rule allows it' }
  }

  /** Throws Refused. */
  async approvedWay({ facts, question }: { readonly facts: NetworkFacts; readonly question: Question }, signal: AbortSignal): Promise<Way> {
    const way = this.wayOf(question)
    if (!('code' in way)) return way
    if (way.code !== 'not-allowed' || !this.canAsk) throw new Refused(way)
    const approved = this.#byApproval
    const why = await this.#order.approvals.ask(keyOf(question), facts, signal)
    if (why !== undefined) throw new Refused({ code: 'declined', why: `no rule allows it, and ${why}` })
    return approved
  }

  get #byApproval(): Way {
    return { rule: 'approval', era: this.#era }
  }

  /** Rules may have been replaced while it waited. Throws Refused. */
  checkAgain({ question, pinned, way }: { readonly question: Question; readonly pinned: Address; readonly way: Way }): void {
    const refusal = this.refusalNow(question, pinned)
    const isApproved = way.era === this.#era && refusal?.code === 'not-allowed'
    const rest = isApproved ? this.#refusalOf(pinned, question.port) : refusal
    if (rest !== undefined) throw new Refused(rest)
  }

  /** Why it would not be allowed if it were asked for now. */
  refusalNow(question: Question, pinned: Address): Refusal | undefined {
    const way = this.wayOf(question)
    return 'code' in way ? way : this.#refusalOf(pinned, question.port)
  }

  #isNamed(address: Address): boolean {
    return this.#rules.private.some((range) => isIn(address, range))
  }

  #refusalOf(address: Address, port: number): Refusal | undefined {
    const isOwn = readingsOf(address).some((reading) => this.#order.isOwn(reading) && !this.#isNamed(reading))
    if (isOwn) return { code: 'private', rule: 'private', why: `${address.text} is of the host itself` }
    return addressRefusal(this.#rules, { address, port })
  }

  /** The first address that stands every check; the others are never dialled. Throws Refused, and what the resolver throws. */
  async pin({ host, port }: Question, signal: AbortSignal): Promise<Address> {
    const addresses = host.kind === 'address' ? [host.address] : await this.#order.resolver.resolve(host.name, signal)
    const judged = addresses.map((address) => ({ address, refusal: this.#refusalOf(address, port) }))
    const found = judged.find(({ refusal }) => refusal === undefined)
    if (found !== undefined) return found.address
    throw new Refused(judged[0]?.refusal ?? { code: 'unresolved', why: `there is no address for ${hostText(host)}` })
  }

  /** Whether a program may be told an address for it. */
  isKnown(name: string): boolean {
    return this.canAsk || isNameKnown(this.#rules, name)
  }
}

function keyOf({ host, port }: Question): string {
  return `${hostText(host)}:${port}`
}

export class Refused extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.why)
  }
}

/** Whatever went wrong, nothing is allowed by it. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refused) return error.refusal
  if (!(error instanceof EgressError)) return { code: 'closed', why: 'it was called off' }
  const { code, message } = error
  return { code: code === 'unreachable' || code === 'timed-out' || code === 'broken' ? 'unresolved' : code, why: message }
}
