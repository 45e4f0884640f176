import type { NetworkInput } from '../contract/network.js'
import type { Policy } from '../contract/policy.js'
import { refuseFlag } from './flag-values.js'

/** What the network of a sandbox is told by, as it is typed. */
export interface NetworkFlags {
  readonly allow?: readonly string[]
  readonly block?: readonly string[]
  readonly netLog?: string
  readonly learnNetwork?: true
}

/** Undefined when nothing is said of it: then it is as the policy has it, or there is none. */
export function parseNetworkFlags(flags: NetworkFlags, { defaults }: Pick<Policy, 'defaults'>): Exclude<NetworkInput, false> | undefined {
  const { allow, block, netLog, learnNetwork } = flags
  const hasNetwork = allow !== undefined || learnNetwork === true
  if (block !== undefined && !hasNetwork) throw refuseFlag('--block', 'takes from what --allow gives, and that is nothing')
  if (netLog !== undefined && !hasNetwork && (defaults.network ?? false) === false) {
    throw refuseFlag('--net-log', 'there is no network to log; --allow HOST gives one')
  }
  if (!hasNetwork) return undefined
  // What is learnt is learnt where everything public may be reached; other ports than those of the web are approved one by one.
  return { allow: [...(learnNetwork ? ['*'] : []), ...(allow ?? [])], ...(block && { block: [...block] }) }
}
