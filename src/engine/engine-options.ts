import type { EventSink, PlatformEvents } from '../contract/events.js'
import type { PlatformBounds } from '../contract/platform-settings.js'
import type { Policy } from '../contract/policy.js'
import type { Receipt, UnsignedReceipt } from '../contract/receipt.js'
import type { SnapshotStore } from '../contract/snapshot-store.js'
import type { RuntimeSource } from './code-runtimes.js'
import type { FilterSource } from './filters.js'
import type { Makers } from './making.js'
import type { PoolsHost } from './pools-facet.js'
import type { SandboxMaking } from './sandbox-making.js'

/** Everything an engine is put together from. */
export interface EngineOptions extends Makers {
  /** The compiled seccomp filter for guests; asked for when a driver that filters opens a cell. */
  readonly filter: FilterSource
  readonly signer: { sign(unsigned: UnsignedReceipt): Promise<Receipt> }
  readonly machine: SandboxMaking['machine'] & PoolsHost['machine']
  readonly listen: SandboxMaking['listen']
  /** Where snapshots are kept. */
  readonly snapshots: SnapshotStore
  /** The kernels of the code interpreter; asked for at the first use. */
  readonly runtimes: () => RuntimeSource
  /** The operator's, which holds whatever a spec brings; asked for each time. */
  readonly policy?: Policy | undefined
  /** Whose all its sandboxes are, where there are several. */
  readonly tenant?: string
  readonly bounds?: Partial<PlatformBounds>
  /** Where what happens is told, and listened to; closed with the engine. */
  readonly events: PlatformEvents & EventSink & { close(): void }
  /** Calls back when this process has nothing left to do; what it returns calls that off. */
  readonly onIdleExit?: PoolsHost['onIdleExit']
}
