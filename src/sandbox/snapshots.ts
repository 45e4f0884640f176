import { checkCallOptions } from '../contract/call-options.js'
import type { CallOptions, Platform, SandboxInfo } from '../contract/platform.js'
import type { Change, ForkOptions, SinceOptions, SnapshotInfo, TakeOptions } from '../contract/snapshots.js'

/** What a handle does with snapshots, over whichever platform it is on. */
export class SandboxSnapshots {
  readonly #platform: Platform
  readonly #id: string

  constructor(platform: Platform, id: string) {
    this.#platform = platform
    this.#id = id
  }

  take(options: TakeOptions): Promise<SnapshotInfo> {
    return this.#platform.snapshots.take(this.#id, checkCallOptions(options, ['signal', 'name']))
  }

  fork(count: number, options: ForkOptions): Promise<readonly SandboxInfo[]> {
    return this.#platform.snapshots.fork(this.#id, count, checkCallOptions(options, ['signal', 'name', 'metadata']))
  }

  diff(options: SinceOptions): Promise<readonly Change[]> {
    return this.#platform.snapshots.diff(this.#id, checkCallOptions(options, ['signal', 'since']))
  }

  export(options: SinceOptions): Promise<AsyncIterable<Uint8Array>> {
    return this.#platform.snapshots.export(this.#id, checkCallOptions(options, ['signal', 'since']))
  }
}

/** The snapshots of a platform, whichever sandboxes they were taken of. */
export interface SnapshotShelf {
  list(options?: CallOptions): Promise<readonly SnapshotInfo[]>
  remove(snapshot: string, options?: CallOptions): Promise<boolean>
}
