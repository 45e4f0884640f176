/** What a cell and its sandbox need for a way out, where the spec asks for one. */
import type { CellNetwork, Probe } from '../contract/driver.js'
import type { EgressDoor } from '../contract/egress.js'
import { SandboxError } from '../contract/errors.js'
import type { NetworkRules } from '../contract/network.js'
import type { RequestJudge } from '../contract/platform-network.js'
import { WayOut } from './network.js'

/** What a platform's ways out are made with. */
export interface EgressSource extends EgressDoor {
  /** What programs are to trust: a file of the host's, as PEM. */
  certificates(): Promise<string>
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
