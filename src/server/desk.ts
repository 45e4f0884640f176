import type { PlatformExecution } from '../contract/code.js'
import type { Platform, PlatformProcess } from '../contract/platform.js'
import type { OneShot, PoolInfo } from '../contract/pools.js'
import { Asks } from './asks.js'
import { Held } from './held.js'
import { Holders } from './holders.js'
import { type Allowance, checkRemoteMode, checkRemoteNetwork, checkRemoteSpec } from './remote-spec.js'

export interface HeldView {
  readonly sandbox: string
  readonly process: PlatformProcess
}

export interface HeldRun {
  readonly shot: OneShot
  readonly asks: Asks | undefined
  /** Called when its caller has released it. */
  readonly onReleased: () => void
}

export interface HeldExecution {
  readonly sandbox: string
  readonly execution: PlatformExecution
}

/** What is held for callers between two of their requests; bounded, and each caller's own. */
export class Desk {
  /** Views of programs, for as long as the stream is open that tells of them. */
  readonly views = new Held<HeldView>('process', 20_000)
  /** Of programs that are over: what they printed can be read for a while, and what they left behind killed. Few, since each holds what there is of its sandbox. */
  readonly endedViews = new Held<HeldView>('process', 128)
  readonly runs = new Held<HeldRun>('run', 20_000)
  readonly executions = new Held<HeldExecution>('execution', 20_000)
  readonly pools = new Held<PoolInfo>('pool', 10_000)
  readonly calls = new Held<AbortController>('call', 20_000)
  readonly holders = new Holders()
  readonly #asks = new Held<Asks>('question', 10_000)
  readonly #allowed: Allowance | 'everything'

  constructor(allowed: Allowance | 'everything') {
    this.#allowed = allowed
  }

  /** Throws SandboxError('forbidden') for what callers may not ask of the machine. */
  checkSpec(spec: unknown): void {
    checkRemoteSpec(spec, this.#allowed)
  }

  checkMode(mode: number | undefined): void {
    if (this.#allowed !== 'everything') checkRemoteMode(mode)
  }

  checkNetwork(network: unknown): void {
    if (this.#allowed !== 'everything') checkRemoteNetwork(network, 'network')
  }

  /** Of a sandbox that is about to be created: told its id when it is known, they are kept until it is over. */
  openAsks(): { readonly asks: Asks; keepFor(tenant: string, platform: Platform, id: string): void } {
    const asks = new Asks()
    return {
      asks,
      keepFor: (tenant, platform, id) => {
        this.#asks.add(tenant, asks, id)
        void this.#forgetAtEnd(asks, platform, id)
      },
    }
  }

  /** Throws SandboxError('not-found') for a sandbox whose questions are put to nobody. */
  asksOf(tenant: string, id: string): Asks {
    return this.#asks.get(tenant, id)
  }

  async #forgetAtEnd(asks: Asks, platform: Platform, id: string): Promise<void> {
    try {
      for await (const event of platform.life.events(id)) if (event.type === 'closed') break
    } catch {
      // It was over before anyone could listen.
    } finally {
      asks.end()
      this.#asks.remove(id)
    }
  }
}
