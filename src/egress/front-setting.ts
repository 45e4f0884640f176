/** What a door knows of the connection that it serves. */
import type { Host, NetworkDoor } from '../contract/network.js'
import type { FrontParts } from './forward.js'
import type { Denial, Entrance, Outlook, Target } from './gate-types.js'
import { isNamedBy } from './http-head.js'

/** The one host that a connection leads to: after CONNECT, after SOCKS, and at a direct door. */
export interface Origin {
  readonly target: Target
  readonly scheme: 'http' | 'https'
  readonly host: Host
  readonly hostText: string
}

export interface Setting {
  readonly parts: FrontParts
  readonly door: NetworkDoor
  /** Undefined at the proxy, where each request names its host. */
  readonly origin: Origin | undefined
  readonly entrance: Entrance
}

export function originOf(target: Target, { scheme, outlook }: { scheme: Origin['scheme']; outlook: Pick<Outlook, 'host' | 'hostText'> }): Origin {
  return { target, scheme, host: outlook.host, hostText: outlook.hostText }
}

/** Whether Host or :authority is that of the connection. */
export function isOfOrigin(named: string, { host, target, scheme }: Origin): boolean {
  return isNamedBy(named, { host, port: target.port, usual: scheme === 'https' ? 443 : 80 })
}

/** What a door refuses by itself: written down by the gate, with the status that fits. */
export function refuse({ parts, door, origin }: Setting, { reason, status = 400 }: { reason: string; status?: number }): Denial {
  const where = origin && { host: origin.hostText, port: origin.target.port, scheme: origin.scheme }
  return { ...parts.gate.refuse({ door, ...where }, reason), status }
}

/** Clients keep connections for a while. */
const betweenMs = 30_000

/** The time that a connection may take to say what it wants next, and how many may be at that at once, are the gate's. */
export class Waiting {
  readonly #setting: Setting
  readonly #end: () => void
  #entrance: Entrance | undefined

  /** `end` is called when it took too long, or too many wait already. */
  constructor(setting: Setting, end: () => void) {
    this.#setting = setting
    this.#end = end
    this.#watch(setting.entrance)
  }

  #watch(entrance: Entrance): void {
    this.#entrance = entrance
    if (entrance.signal.aborted) this.#end()
    else entrance.signal.addEventListener('abort', this.#end, { once: true })
  }

  /** It said what it wants. */
  leave(): void {
    this.#entrance?.signal.removeEventListener('abort', this.#end)
    this.#entrance?.leave()
    this.#entrance = undefined
  }

  /** It may say something again. */
  begin(): void {
    if (this.#entrance) return
    const entrance = this.#setting.parts.gate.enter(betweenMs)
    if (entrance) this.#watch(entrance)
    else this.#end()
  }
}
