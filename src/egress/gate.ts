/**
 * The gate of one sandbox. An attempt passes, in this order: the parser of hosts, the rules, whoever may approve what no rule decides, the number of
 * connections, the resolver, and the check of every address that it gave; the first that stands all of it is pinned, and nothing else is ever dialled.
 * What was decided before a wait is decided again after it. Each attempt is written down once, however it ends.
 */
import { setMaxListeners } from 'node:events'
import type { EgressOrder } from '../contract/egress.js'
import { linkSignals } from '../contract/linked-signals.js'
import type { Address, Host, NetworkRecord, NetworkRules, NetworkSummary } from '../contract/network.js'
import { mustTerminate, type Question } from '../policy/network-decide.js'
import { hostText, isSameHost } from '../policy/network-host.js'
import { Approvals } from './approvals.js'
import { type Clock, realClock } from './clock.js'
import { createOwnAddresses, dial } from './dial.js'
import { EgressError } from './egress-error.js'
import { denialOf, type Refusal } from './gate-denial.js'
import { Entrances } from './gate-entrances.js'
import { Judge, Refused, refusalOf, type Way } from './gate-judge.js'
import { LivePermit } from './gate-permit.js'
import type { Attempt, Denial, Ending, Entrance, Gate, Outlook, Permit, Target } from './gate-types.js'
import { LiveUpstream, SharedLimits } from './gate-upstream.js'
import { Intake } from './intake.js'
import { answerQuery } from './names.js'
import { type Place, Places } from './places.js'
import { type Draft, Records } from './records.js'
import { Reserve } from './reserve.js'
import type { Resolver } from './resolver.js'

export interface GateOrder extends EgressOrder {
  readonly resolver: Resolver
  /** Whether an address is one of the host's own, which nobody reaches unless an operator has named it; as its interfaces say when not given. */
  readonly isOwn?: (address: Address) => boolean
  readonly clock?: Clock
  readonly timings?: Partial<typeof usualTimings>
}

const usualTimings = { entranceMs: 10_000, approvalMs: 60_000, placeMs: 30_000, connectMs: 10_000 }
const mostWaitingForPlace = 256
const mostApprovals = 32

export function createGate(order: GateOrder): Gate {
  return new LiveGate(order)
}

class LiveGate implements Gate {
  readonly #order: GateOrder
  readonly #clock: Clock
  readonly #timings: typeof usualTimings
  readonly #closing = new AbortController()
  readonly #records: Records
  readonly #judge: Judge
  readonly #places: Places
  readonly #shared: SharedLimits
  readonly #reserve = new Reserve()
  readonly #entrances: Entrances
  readonly #permits = new Set<LivePermit>()
  #onSettled = (): void => undefined
  /** The one that was used least recently first. */
  readonly #upstreams = new Set<LiveUpstream>()

  constructor(order: GateOrder) {
    this.#order = order
    this.#clock = order.clock ?? realClock
    this.#timings = { ...usualTimings, ...order.timings }
    // All that is under way listens to it.
    setMaxListeners(0, this.#closing.signal)
    this.#records = new Records(order.sandbox, this.#clock)
    const { approvalMs, placeMs, entranceMs } = this.#timings
    this.#judge = new Judge({
      rules: order.rules,
      approvals: new Approvals({ onRequest: order.onRequest, timeoutMs: approvalMs, mostWaiting: mostApprovals }),
      resolver: order.resolver,
      isOwn: order.isOwn ?? createOwnAddresses(() => this.#clock.now()),
    })
    const most = order.rules.limits.maxConnections
    this.#places = new Places({ most, mostWaiting: mostWaitingForPlace, waitMs: placeMs, makeRoom: () => this.#makeRoom() })
    this.#shared = new SharedLimits(order.rules.limits, { clock: this.#clock, outer: order.budget })
    this.#entrances = new Entrances({ waitMs: entranceMs, closing: this.#closing.signal })
  }

  get rules(): NetworkRules {
    return this.#judge.rules
  }

  get ports(): readonly number[] {
    const named = this.#judge.rules.allow.flatMap(({ ports }) => ports ?? [])
    return [...new Set([...named, ...(this.#judge.canAsk ? [80, 443] : [])])].sort((a, b) => a - b)
  }

  enter(waitMs?: number): Entrance | undefined {
    return this.#entrances.enter({ most: this.#judge.rules.limits.maxConnections, waitMs })
  }

  look(target: Target): Outlook | Denial {
    const draft = this.#records.draft({ ...target, scheme: 'tcp' })
    const host = this.#judge.hostOf(target)
    if ('code' in host) return this.#deny(draft, host)
    const way = this.#judge.wayOf({ host, port: target.port, request: 'unknown' })
    if ('code' in way && !(way.code === 'not-allowed' && this.#judge.canAsk)) return this.#deny({ ...draft, host: hostText(host) }, way)
    return { allowed: true, host, hostText: hostText(host), terminate: mustTerminate(this.#judge.rules, host, target.port), sni: this.#judge.rules.sni }
  }

  async ask(attempt: Attempt, signal?: AbortSignal): Promise<Permit | Denial> {
    const draft = this.#records.draft(attempt)
    const host = this.#judge.hostOf(attempt)
    if ('code' in host) return this.#deny(draft, host)
    const known = { ...draft, host: hostText(host) }
    using over = linkSignals(this.#closing.signal, signal)
    try {
      return await this.#pass({ attempt, draft: known, question: questionOf(attempt, host) }, over.signal)
    } catch (error) {
      return this.#deny(known, refusalOf(error))
    }
  }

  /** Throws what a refusal is made of. */
  async #pass({ attempt, draft, question }: Passage, signal: AbortSignal): Promise<Permit> {
    signal.throwIfAborted()
    const way = await this.#judge.approvedWay({ facts: this.#records.facts(draft), question }, signal)
    const spent = this.#shared.refusal
    if (spent !== undefined) throw new Refused({ code: 'budget', why: spent })
    const room = this.#reusable(attempt, question) ?? (await this.#places.take(signal))
    try {
      const pinned = 'free' in room ? await this.#judge.pin(question, signal) : room.pinned
      signal.throwIfAborted()
      this.#judge.checkAgain({ question, pinned, way })
      return this.#permit({ attempt, draft, question, pinned, way, room })
    } catch (error) {
      if ('free' in room) room.free()
      throw error
    }
  }

  #permit({ attempt, draft, question, pinned, way, room }: Passage & { readonly pinned: Address; readonly way: Way; readonly room: Place | LiveUpstream }) {
    const { host, port } = question
    const permit = new LivePermit({
      attempt,
      question,
      hostText: hostText(host),
      pinned,
      rule: way.rule,
      rules: this.#judge.rules,
      terminate: mustTerminate(this.#judge.rules, host, port),
      room,
      connect: (of, place) => this.#connect(of, place),
      onFinished: (of, ending) => this.#finished(of, { draft: { ...draft, address: pinned.text }, ending }),
    })
    this.#permits.add(permit)
    return permit
  }

  /** Only a connection of this gate, that still stands, to the same host and port. */
  #reusable({ over }: Attempt, { host, port }: Question): LiveUpstream | undefined {
    const known = [...this.#upstreams].find((upstream) => upstream === over)
    return known?.isOpen === true && known.port === port && isSameHost(known.host, host) ? known : undefined
  }

  async #connect(permit: LivePermit, place: Place): Promise<LiveUpstream> {
    const { question, pinned, rules } = permit.order
    const { connectMs } = this.#timings
    const intake = new Intake(this.#reserve)
    const socket = await dial({ address: pinned, port: question.port, timeoutMs: connectMs, signal: permit.signal, intake })
    const upstream = new LiveUpstream(socket, {
      intake,
      host: question.host,
      port: question.port,
      pinned,
      place,
      shared: this.#shared,
      clock: this.#clock,
      idleTimeoutMs: rules.limits.idleTimeoutMs,
      onTraffic: () => this.#order.onTraffic?.(),
      onClosed: (closed) => this.#upstreams.delete(closed),
    })
    this.#upstreams.add(upstream)
    return upstream
  }

  #finished(permit: LivePermit, { draft, ending }: { readonly draft: Draft; readonly ending: Ending }): void {
    this.#permits.delete(permit)
    if (this.#permits.size === 0) this.#onSettled()
    this.#records.write(draft, { verdict: 'allowed', rule: permit.rule, reason: '', ...ending })
    const { upstream } = permit
    if (upstream === undefined || upstream.users.size > 0) return
    // Last in line to make room, unless somebody waits already.
    if (this.#upstreams.delete(upstream)) this.#upstreams.add(upstream)
    if (this.#places.hasWaiting) upstream.close()
  }

  #makeRoom(): boolean {
    const unused = [...this.#upstreams].find(({ users }) => users.size === 0)
    unused?.close()
    return unused !== undefined
  }

  #deny(draft: Draft, refusal: Refusal): Denial {
    const denial = denialOf(refusal, this.#records.facts(draft))
    const verdict = refusal.code === 'unresolved' || refusal.code === 'closed' ? 'failed' : 'denied'
    this.#records.write(draft, { verdict, rule: refusal.rule ?? '', reason: denial.reason, status: denial.status })
    return denial
  }

  refuse(what: Partial<Attempt> & Pick<Attempt, 'door'>, reason: string): Denial {
    return this.#deny(this.#records.draft({ host: '', port: 0, scheme: 'tcp', ...what }), { code: 'protocol', why: reason })
  }

  answer(query: Uint8Array): Uint8Array | undefined {
    if (this.#closing.signal.aborted) return undefined
    const onDenied = (name: string): void => {
      const draft = this.#records.draft({ door: 'direct', host: name, port: 53, scheme: 'dns' })
      this.#records.write(draft, { verdict: 'denied', rule: '', reason: 'no rule allows this name, so nobody was asked for it' })
    }
    return answerQuery(query, { names: this.#judge.names, isKnown: (name) => this.#judge.isKnown(name), onDenied })
  }

  update(rules: NetworkRules): void {
    this.#judge.update(rules)
    this.#places.most = rules.limits.maxConnections
    this.#shared.update(rules.limits)
    for (const permit of this.#permits) {
      const refusal = this.#judge.refusalNow(permit.order.question, permit.order.pinned)
      if (refusal === undefined) continue
      const error = new EgressError(refusal.code, `the rules were replaced: ${refusal.why}`)
      permit.fail(error)
      permit.upstream?.close(error)
    }
    for (const upstream of this.#upstreams) {
      const { host, port, pinned } = upstream
      if (this.#judge.refusalNow({ host, port, request: 'unknown' }, pinned) !== undefined) upstream.close()
    }
  }

  log(signal?: AbortSignal): AsyncIterable<NetworkRecord> {
    return this.#records.read(signal)
  }

  summary(): NetworkSummary {
    return this.#records.summary
  }

  async settled(mostMs: number): Promise<void> {
    if (this.#permits.size === 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, mostMs)
      this.#onSettled = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  async close(): Promise<void> {
    const error = new EgressError('closed', 'the sandbox was closed')
    this.#closing.abort(error)
    for (const permit of this.#permits) permit.fail(error)
    for (const upstream of this.#upstreams) upstream.close(error)
    // Those who used them write down how it ended; what they have not by then, nobody does.
    await new Promise((resolve) => setImmediate(resolve))
    for (const permit of this.#permits) permit.finish()
    this.#records.close()
  }
}

interface Passage {
  readonly attempt: Attempt
  readonly draft: Draft
  readonly question: Question
}

function questionOf({ port, scheme, method, path, instead }: Attempt, host: Host): Question {
  if (scheme === 'tls' || scheme === 'tcp') return { host, port, request: 'opaque' }
  return { host, port, request: { method: method ?? '', path: path ?? '', ...(instead && { instead }) } }
}
