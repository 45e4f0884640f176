/** One request on its way: asked for, sent over a connection to exactly that host, its answer handed back. */
import type { Readable } from 'node:stream'
import type { SecureContext } from 'node:tls'
import type { Host, NetworkScheme } from '../contract/network.js'
import { isSameHost } from '../policy/network-host.js'
import type { Authority } from './authority.js'
import { type Answer, type Carrier, Http1Carrier, Http2Carrier } from './carrier.js'
import type { Credentials } from './credentials.js'
import { denialWord, failureText, failureWord, type Header, type Word } from './front-words.js'
import type { Gate, Permit, Target } from './gate-types.js'
import { type Framing, insteadOf } from './http-head.js'
import type { Packages } from './packages.js'
import { secureUpstream } from './tls.js'
import type { Turns } from './turns.js'

/** What all doors of a sandbox share. */
export interface FrontParts {
  readonly gate: Gate
  authority(): Authority
  trust(): SecureContext
  /** Of connections that begin, and of handshakes. */
  readonly turns: Turns
  /** As the rules have them now. */
  credentials(): Credentials
  /** What is kept of packages, and what their indexes promised. */
  readonly packages?: Packages
}

export interface GuestRequest {
  readonly target: Target
  /** That of the target, where it can be read. */
  readonly host: Host | undefined
  readonly scheme: Extract<NetworkScheme, 'http' | 'https' | 'ws' | 'wss'>
  readonly method: string
  readonly path: string
  readonly headers: readonly Header[]
  readonly framing: Framing
  readonly body: Readable
  readonly upgrade?: readonly Header[]
  /** Aborts when the program no longer wants it. */
  readonly gone: AbortSignal
}

/** How the program gets its answer. */
export interface Reply {
  readonly isBegun: boolean
  /** It may send its body. */
  begin(): void
  /** Resolves when all of it was taken; rejects when either side broke off. */
  pass(answer: Answer): Promise<void>
  say(word: Word): void
  /** After something was said that is not whole. */
  breakOff(): void
}

/** How long a connection waits for another request. */
const spareMs = 15_000
const mostSpares = 4
/** What may be sent twice without anybody noticing. */
const repeatable = ['GET', 'HEAD', 'OPTIONS']

/** What a request goes over, if there is something already; others wait until it lets them pass. */
interface Turn {
  readonly carrier: Carrier | undefined
  pass(): void
}

/** The connections to other sides that one connection of a guest has. */
export class Carriers {
  readonly #parts: FrontParts
  readonly #protocols: readonly string[]
  readonly #all = new Set<Carrier>()
  readonly #spares = new Map<Carrier, NodeJS.Timeout | undefined>()
  /** Whether all may turn out to share one connection, and whether one of them is just finding out. */
  #mayShare: boolean
  #opening: Promise<void> | undefined

  constructor(parts: FrontParts, { protocols }: { readonly protocols: readonly string[] }) {
    this.#parts = parts
    this.#protocols = protocols
    this.#mayShare = protocols.includes('h2')
  }

  async forward(request: GuestRequest, reply: Reply): Promise<void> {
    const turn = await this.#take(request)
    try {
      const ending = await this.#attempt(request, { reply, turn })
      // The other side may end a connection at the very moment when it is used again, which is nobody's fault.
      if (ending === 'stale') await this.#attempt(request, { reply, turn: { ...turn, carrier: undefined } })
    } finally {
      turn.pass()
    }
  }

  async #attempt(request: GuestRequest, { reply, turn }: { reply: Reply; turn: Turn }): Promise<'over' | 'stale'> {
    const { target, scheme, method, path, gone } = request
    const { carrier } = turn
    const instead = insteadOf(request.headers)
    const attempt = { ...target, scheme, method, path, ...(instead && { instead }), ...(carrier && { over: carrier.upstream }) }
    const permit = await this.#parts.gate.ask(attempt, gone)
    if (!permit.allowed) {
      if (carrier) this.#keep(carrier)
      reply.say(denialWord(permit))
      return 'over'
    }
    const signal = AbortSignal.any([permit.signal, gone])
    const asked = this.#askedFor(request, permit)
    let used = carrier
    try {
      const kept = await this.#parts.packages?.find(asked, signal)
      if (kept) {
        await reply.pass(kept).finally(() => kept.body.destroy())
        permit.finish({ status: kept.status, bytesUp: 0, bytesDown: 0 })
        if (carrier) this.#keep(carrier)
        return 'over'
      }
      used ??= await this.#dial(permit, { scheme, signal })
      turn.pass()
      reply.begin()
      const answer = await used.send(this.#outgoing(request, { permit, signal }))
      await reply.pass((await this.#parts.packages?.watch(asked, answer)) ?? answer)
      permit.finish({ status: answer.status, ...answer.counted?.() })
      this.#keep(used)
      return 'over'
    } catch (error) {
      const why: unknown = permit.signal.aborted ? permit.signal.reason : error
      // Why the gate has ended it, the gate knows best.
      permit.finish(permit.signal.aborted ? {} : { verdict: 'failed', reason: gone.aborted ? 'the program went away' : failureText(why) })
      used?.close()
      if (isStale({ request, reply, isAgain: carrier !== undefined, signal })) return 'stale'
      if (reply.isBegun) reply.breakOff()
      else reply.say(failureWord(why))
      return 'over'
    }
  }

  #askedFor({ scheme, method, headers, path }: GuestRequest, permit: Permit) {
    const authority = permit.port === 443 ? permit.hostText : `${permit.hostText}:${permit.port}`
    return { scheme, method, headers, path, authority, isPrivate: this.#parts.credentials().areFor(permit) }
  }

  #outgoing(request: GuestRequest, { permit, signal }: { permit: Permit; signal: AbortSignal }) {
    const { method, path, framing, body, upgrade } = request
    const scheme = request.scheme === 'https' || request.scheme === 'wss' ? ('https' as const) : ('http' as const)
    const authority = permit.port === (scheme === 'https' ? 443 : 80) ? permit.hostText : `${permit.hostText}:${permit.port}`
    const theirs = this.#parts.packages?.headersFor(this.#askedFor(request, permit)) ?? request.headers
    const headers = scheme === 'https' ? this.#parts.credentials().addTo(theirs, permit) : theirs
    return { method, path, scheme, authority, headers, framing, body, signal, ...(upgrade && { upgrade }) }
  }

  async #dial(permit: Permit, { scheme, signal }: { scheme: GuestRequest['scheme']; signal: AbortSignal }): Promise<Carrier> {
    const upstream = await permit.dial()
    upstream.stream.on('error', () => undefined)
    const protocols = scheme === 'wss' ? ['http/1.1'] : this.#protocols
    const isPlain = scheme === 'http' || scheme === 'ws'
    const secured = isPlain ? undefined : await secureUpstream(upstream.stream, { host: permit.host, trust: this.#parts.trust(), protocols, signal })
    const carrier = secured?.alpnProtocol === 'h2' ? new Http2Carrier(upstream, secured) : new Http1Carrier(upstream, secured ?? upstream.stream)
    this.#all.add(carrier)
    upstream.stream.once('close', () => this.#forget(carrier))
    if (carrier.isShared) this.#keep(carrier)
    else this.#mayShare = false
    return carrier
  }

  /** Where all may share one connection, the others wait until the first has it. */
  async #take(request: GuestRequest): Promise<Turn> {
    while (this.#mayShare && this.#opening) await this.#opening
    const carrier = request.upgrade ? undefined : this.#spareFor(request)
    if (!this.#mayShare || carrier) return { carrier, pass: () => undefined }
    let pass = (): void => undefined
    const opening = new Promise<void>((resolve) => {
      pass = resolve
    })
    this.#opening = opening
    const end = (): void => {
      if (this.#opening === opening) this.#opening = undefined
      pass()
    }
    return { carrier: undefined, pass: end }
  }

  /** One that waits, or that is shared, and leads to the same host and port. */
  #spareFor({ target, host }: GuestRequest): Carrier | undefined {
    for (const [carrier, timer] of this.#spares) {
      const { upstream, isUsable, isShared } = carrier
      if (!isUsable || host === undefined || upstream.port !== target.port || !isSameHost(upstream.host, host)) continue
      clearTimeout(timer)
      if (isShared) this.#spares.set(carrier, undefined)
      else this.#spares.delete(carrier)
      return carrier
    }
    return undefined
  }

  #keep(carrier: Carrier): void {
    if (!carrier.isUsable) {
      if (!carrier.isShared) carrier.close()
      return
    }
    clearTimeout(this.#spares.get(carrier))
    this.#spares.delete(carrier)
    this.#spares.set(carrier, setTimeout(() => (carrier.isBusy ? this.#keep(carrier) : carrier.close()), spareMs).unref())
    const [oldest] = this.#spares.keys()
    if (oldest && this.#spares.size > mostSpares) oldest.close()
  }

  #forget(carrier: Carrier): void {
    clearTimeout(this.#spares.get(carrier))
    this.#spares.delete(carrier)
    this.#all.delete(carrier)
  }

  close(): void {
    for (const carrier of this.#all) carrier.close()
  }
}

interface StaleFacts {
  readonly request: GuestRequest
  readonly reply: Reply
  readonly isAgain: boolean
  readonly signal: AbortSignal
}

function isStale({ request, reply, isAgain, signal }: StaleFacts): boolean {
  return isAgain && !signal.aborted && !reply.isBegun && request.framing === 'none' && repeatable.includes(request.method)
}
