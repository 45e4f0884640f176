/** What the doors of the way out see of the gate, which decides. Every connection and every request asks it; nobody else dials. */
import type { Host, NetworkDoor, NetworkRecord, NetworkRules, NetworkScheme, NetworkSummary } from '../contract/network.js'
import type { MeteredStream } from './metered-stream.js'

/** Where a program wants to go, as it said so. */
export interface Target {
  readonly door: NetworkDoor
  /**
   * The text between `://` or the start and the port, unchanged: `Example.ORG.`, `[::1]`, `0x7f.1`. Nobody else takes it apart. At a direct door, the
   * address that was connected to: one that stands for a name is read as that name.
   */
  readonly host: string
  readonly port: number
  readonly process?: number
}

export interface Attempt extends Target {
  readonly scheme: Exclude<NetworkScheme, 'dns'>
  /** Both of requests only. The path as it stands in the request, query included: what is logged is cut by the gate. */
  readonly method?: string
  readonly path?: string
  /** What headers of it ask servers to take instead of both. */
  readonly instead?: { readonly methods: readonly string[]; readonly paths: readonly string[] }
  /** A connection of an earlier permit that this request may go over: it must be for the same host and port, and takes no further place. */
  readonly over?: Upstream
}

/** What may be said before a request is known, as after CONNECT. Nothing was resolved. */
export interface Outlook {
  readonly allowed: true
  readonly host: Host
  /** As it is written in URLs: `example.org`, `203.0.113.7`, `[2001:db8::1]`. What SNI, Host and :authority must say. */
  readonly hostText: string
  /** Whether TLS to it must be terminated, and each request asked for. Otherwise the connection is asked for as `tls` or `tcp`. */
  readonly terminate: boolean
  readonly sni: 'match' | 'any'
}

export interface Permit extends Outlook {
  readonly port: number
  /** What was resolved and checked, and what will be dialled. */
  readonly address: string
  /** The entry that allowed it. */
  readonly rule: string
  /**
   * Aborts when it must end: rules that no longer allow it, the time of one request (not of `tls` and `tcp`), a spent budget of bytes, the end of the
   * sandbox. Its reason is an EgressError, whose message is for the guest.
   */
  readonly signal: AbortSignal
  /** The connection; the one of `over` when there was one. Throws EgressError. */
  dial(): Promise<Upstream>
  /** Must be called once it is over, however it ended: writes the record and gives the place back if nothing was dialled. Idempotent. */
  finish(ending?: Ending): void
}

export interface Ending {
  /** Of HTTP. */
  readonly status?: number
  /** Where connections are shared: otherwise what went over the connection meanwhile is counted. */
  readonly bytesUp?: number
  readonly bytesDown?: number
  /** `denied`: what came out later, as another SNI. `failed`: anything that went wrong. */
  readonly verdict?: 'denied' | 'failed'
  readonly reason?: string
}

/**
 * A connection to the address that was checked. Bytes are counted and slowed down in both directions as they pass; it is destroyed when idle for too long,
 * when no longer allowed, and when its budget is spent.
 */
export interface Upstream {
  /** Takes `setNoDelay`, `setKeepAlive`, `setTimeout`, `ref` and `unref` as a socket does. Its errors are EgressErrors. */
  readonly stream: MeteredStream
  readonly host: Host
  readonly port: number
  readonly address: string
  readonly isOpen: boolean
}

export type DenialCode =
  | 'unparsable'
  | 'not-allowed'
  | 'blocked'
  | 'private'
  | 'method'
  | 'path'
  | 'opaque'
  | 'declined'
  | 'unresolved'
  | 'busy'
  | 'budget'
  | 'closed'
  | 'protocol'

export interface Denial {
  readonly allowed: false
  readonly code: DenialCode
  /** Of HTTP: 400, 403, 429, 502 or 503. */
  readonly status: number
  /** One line. */
  readonly reason: string
  /** The entry that would allow it, as it is written in `network.allow`; undefined where none would. */
  readonly wouldAllow: string | undefined
  /** For the guest: reason, and what would allow it. Printable, one line. */
  readonly message: string
}

/** A guest's connection that waits to say what it wants, for the first time or once more. */
export interface Entrance {
  /** Aborts when it has taken too long to say what it wants, and at the end of the sandbox. */
  readonly signal: AbortSignal
  /** It has said what it wants, or is gone. Idempotent. */
  leave(): void
}

export interface Gate {
  /** Undefined when too many wait already: the connection is to be ended at once. Ten seconds unless more is given, as between two requests. */
  enter(waitMs?: number): Entrance | undefined
  /** A denial has been written down. */
  look(target: Target): Outlook | Denial
  /** Decides, asks for approval, waits for a place, resolves and pins. Never throws. A denial has been written down. */
  ask(attempt: Attempt, signal?: AbortSignal): Promise<Permit | Denial>
  /** For what a door refuses by itself, as a message that cannot be read: written down as denied. */
  refuse(what: Partial<Attempt> & Pick<Attempt, 'door'>, reason: string): Denial
  /** A message of DNS; undefined: no answer. Never throws. */
  answer(query: Uint8Array): Uint8Array | undefined
  readonly rules: NetworkRules
  readonly ports: readonly number[]
  update(rules: NetworkRules): void
  log(signal?: AbortSignal): AsyncIterable<NetworkRecord>
  summary(): NetworkSummary
  /** Resolves when nothing that was allowed is under way, or after so long. */
  settled(mostMs: number): Promise<void>
  close(): Promise<void>
}
