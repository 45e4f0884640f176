/** What a cell and its sandbox need for a way out, where the spec asks for one. */
import type { CellNetwork, Probe } from '../contract/driver.js'
import type { EgressDoor } from '../contract/egress.js'
import { SandboxError } from '../contract/errors.js'
import { type Network, type NetworkRules, networkSchema } from '../contract/network.js'
import type { Clamping, Policy } from '../contract/policy.js'
import type { RequestJudge } from '../contract/platform-network.js'
import type { PlannedSandbox } from '../policy/apply.js'
import { networkRules } from '../policy/network-rules.js'
import { parseWith } from '../policy/refusal.js'
import { WayOut } from './network.js'

/** What a platform's ways out are made with. */
export interface EgressSource extends EgressDoor {
  /** What programs are to trust: a file of the host's, as PEM. */
  certificates(): Promise<string>
}

/** Throws SandboxError('invalid') naming the field. */
export function rulesOf({ spec, policy }: Pick<PlannedSandbox, 'spec' | 'policy'>): NetworkRules | undefined {
  return spec.network === false
    ? undefined
    : networkRules(spec.network, (policy.ceiling as { readonly network?: { readonly private?: readonly string[] } }).network?.private)
}

export interface PlannedNetwork {
  readonly network: Exclude<Network, false>
  readonly rules: NetworkRules
  readonly clamped: readonly Clamping[]
}

/** Other rules for a sandbox that lives, held to its policy. */
export function planNetwork(change: unknown, policy: Policy): PlannedNetwork {
  const network = parseWith(networkSchema, change, 'network')
  if (network === false)
    throw new SandboxError('invalid', 'network: a sandbox that has one keeps it; allow nothing instead', { hint: 'sandbox.network.update({ allow: [] })' })
  const rules = networkRules(network, (policy.ceiling as { readonly network?: { readonly private?: readonly string[] } }).network?.private)
  return { network, rules, clamped: [] }
}

/** What its cell is asked for. */
export async function cellNetwork({ features }: Probe, source: EgressSource | undefined): Promise<CellNetwork> {
  return { direct: features['direct-network'].available, certificates: await found(source).certificates() }
}

/** What a sandbox asks of its way out. */
export interface WayWish {
  readonly rules: NetworkRules
  readonly onRequest: RequestJudge | undefined
}

export async function openNetwork(id: string, wish: WayWish, source: EgressSource | undefined): Promise<WayOut> {
  return WayOut.open({ id, ...wish, source: found(source) })
}

function found(source: EgressSource | undefined): EgressSource {
  if (source) return source
  throw new SandboxError('unsupported', 'network: this platform has no way out', { hint: 'glovebox doctor' })
}
