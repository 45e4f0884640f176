/** How the programs of a cell reach the way out: the engine hands over what the warden took in, egress decides. Nothing here is public. */
import type { NetworkFacts, NetworkRecord, NetworkRules, NetworkSummary } from './network.js'

/** A connection that a program inside has made to one of the warden's listeners. */
export interface GuestConnection {
  /** Of the proxy, or of a listener that stands for every address at that port; at 53 it speaks DNS, each message behind its length. */
  readonly door: 'proxy' | 'direct'
  /** Where the program meant to go: without meaning for the proxy. */
  readonly address: string
  readonly port: number
  /** What the program sends, until its end. One consumer; not reading it holds the program back. Throws when the connection broke off. */
  readonly output: AsyncIterable<Uint8Array>
  /** Resolves when the bytes are on their way and their memory may be used again; rejects when the connection broke off. */
  write(bytes: Uint8Array): Promise<void>
  /** Of this direction. */
  end(): Promise<void>
  /** Resolves when both directions have ended, or after `destroy`; rejects when the connection broke off. */
  readonly closed: Promise<void>
  /** Ends both directions at once. Idempotent. */
  destroy(): Promise<void>
}

/** The way out of one sandbox. */
export interface Egress {
  /** Never throws: whatever goes wrong ends that connection and is written down. */
  accept(connection: GuestConnection): void
  /** A message of DNS that a program sent as a datagram; undefined: no answer is given. Never throws. */
  answer(query: Uint8Array): Promise<Uint8Array | undefined>
  /** The ports at which direct connections are worth taking in, as the rules have them now. */
  readonly ports: readonly number[]
  /** From now on; connections that the new rules would not allow are ended. */
  update(rules: NetworkRules): void
  /** What is written down from now on, until the sandbox is over or the signal aborts. */
  log(signal?: AbortSignal): AsyncIterable<NetworkRecord>
  summary(): NetworkSummary
  /** Resolves when nothing is under way, or after so long. */
  settled(mostMs: number): Promise<void>
  /** Ends every connection; those whose programs are gone have so long to end by themselves, at once when not given. Idempotent. */
  close(options?: { readonly graceMs?: number }): Promise<void>
}

/** Bytes that more than one sandbox may carry together, in both directions. What is left is asked and taken in one turn, so that no two who carry at once both take the last. */
export interface SharedBudget {
  /** From 0 on; Infinity where there is no limit. Never throws: what cannot be told is 0. */
  readonly leftBytes: number
  take(bytes: number): void
  /** For the guest: that it is spent. */
  readonly words: string
}

export interface EgressOrder {
  readonly sandbox: string
  readonly rules: NetworkRules
  /** Asked for what no rule decides; not given: denied. */
  readonly onRequest?: (facts: NetworkFacts) => Promise<'once' | 'sandbox' | 'deny'>
  /** Something moved: the sandbox is not idle. */
  readonly onTraffic?: () => void
  /** Beside what the rules allow this sandbox. */
  readonly budget?: SharedBudget
}

/** What a platform has one of. */
export interface EgressDoor {
  open(order: EgressOrder): Promise<Egress>
  close(): Promise<void>
}
