import type { NetworkApproval, NetworkFacts, NetworkInput, NetworkRecord, NetworkSummary } from './network.js'
import type { CallOptions, SandboxInfo } from './platform.js'

/** Asked about what no rule decides, and about nothing else: what is blocked or not public stays denied. What it throws, and anything but an approval, denies. */
export type RequestJudge = (facts: NetworkFacts) => NetworkApproval | Promise<NetworkApproval>

export interface CreationOptions extends CallOptions {
  /** Not given: what no rule decides is denied. */
  readonly onRequest?: RequestJudge
}

export interface SummaryOptions extends CallOptions {
  /** For when its programs are over: what they left under way has a moment to end by itself, and is in the summary when it did. */
  readonly settled?: boolean
}

/** The way out of sandboxes that have one; of any other, all of this is SandboxError('conflict'). */
export interface PlatformNetwork {
  /** Other rules instead of those that hold, from now on: connections that they would not allow are ended. Approvals end with the rules they were given beside. */
  update(id: string, network: Exclude<NetworkInput, false>, options?: CallOptions): Promise<SandboxInfo>
  /** What is written down from now on, one record a connection or request when it is over; ends with the sandbox. */
  log(id: string, options?: CallOptions): AsyncIterable<NetworkRecord>
  summary(id: string, options?: SummaryOptions): Promise<NetworkSummary>
}
