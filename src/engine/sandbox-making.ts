import type { SandboxError } from '../contract/errors.js'
import type { SandboxInfo } from '../contract/platform.js'
import type { PlatformBounds } from '../contract/platform-settings.js'
import type { Origins, Policy } from '../contract/policy.js'
import type { PlannedSandbox } from '../policy/apply.js'
import type { ReceiptFacts } from '../receipt/index.js'
import type { MadeHome } from './live-cell.js'
import type { PortsOrder } from './ports.js'
import type { ReceiptStory } from './receipt-now.js'
import type { Remade } from './remaking.js'
import type { KeepAside } from './snapshots-facet.js'
import type { ZygoteFiles } from './zygote.js'

/** What a sandbox is made of. */
export interface SandboxMaking {
  readonly info: SandboxInfo
  readonly whose?: Pick<SandboxInfo, 'tenant'>
  readonly home: MadeHome
  /** How its first cell came about. */
  readonly made: ReceiptStory['made']
  /** All that holds its limits, runs and mounts. */
  readonly policy: Policy
  /** Who stated what when it was created. */
  readonly origins: Origins
  readonly bounds: Pick<PlatformBounds, 'maxRuns' | 'answerMs' | 'maxRingBytes' | 'maxPausedMs'>
  readonly machine: ReceiptFacts['machine'] & { readonly processors: number }
  readonly listen: PortsOrder['listen']
  /** Another cell of the same kind, for when it has none. */
  remake(planned: PlannedSandbox, signal: AbortSignal): Promise<Remade>
  readonly keepAside: KeepAside
  /** What zygotes are started with; undefined where there are none. */
  readonly zygotes?: () => Promise<ZygoteFiles> | undefined
  /** Called once, when nothing of the sandbox is left. */
  onGone(why: SandboxError): void
}
