import { checkCallOptions } from '../contract/call-options.js'
import type { RequestJudge } from '../contract/platform-network.js'
import type { OneShot, OneShotNetwork, Released } from '../contract/pools.js'
import type { Receipt, UnsignedReceipt } from '../contract/receipt.js'
import type { RunRequest } from '../contract/run.js'
import type { LiveSandbox } from './live-sandbox.js'
import type { WayStory } from './network.js'

/** What a one-shot in a cell of its own needs of the pools. */
export interface OneShotHost {
  sign(unsigned: UnsignedReceipt): Promise<Receipt>
  /** It is closed while nobody waits for it. */
  letGo(sandbox: LiveSandbox): void
}

/** One that waited is asked about by whoever has it now; it goes when that cannot be. */
export async function entrust(sandbox: LiveSandbox, onRequest: RequestJudge | undefined, { letGo }: Pick<OneShotHost, 'letGo'>): Promise<LiveSandbox> {
  const { id, spec } = sandbox.info
  if (onRequest === undefined || spec.network === false) return sandbox
  try {
    await sandbox.network.renew({ id, onRequest })
    return sandbox
  } catch (error) {
    letGo(sandbox)
    throw error
  }
}

/** The command, in a sandbox that is its alone. */
export async function shootOnce(
  sandbox: LiveSandbox,
  { request, signal }: { request: RunRequest; signal: AbortSignal | undefined },
  host: OneShotHost,
): Promise<OneShot> {
  try {
    const story = storyOf(sandbox)
    const program = await sandbox.start(request, signal)
    return {
      sandbox: sandbox.info,
      program,
      ...(story && { network: networkOf(story) }),
      receipt: async (options = {}) => {
        const { signal } = checkCallOptions(options)
        const unsigned = await sandbox.receipt()
        signal?.throwIfAborted()
        return host.sign(unsigned)
      },
      release: async () => {
        try {
          return await finished(story)
        } finally {
          host.letGo(sandbox)
        }
      },
    }
  } catch (error) {
    host.letGo(sandbox)
    throw error
  }
}

/** Of one that has a network. */
export function storyOf(sandbox: Pick<LiveSandbox, 'info' | 'network'>): WayStory | undefined {
  return sandbox.info.spec.network === false ? undefined : sandbox.network.story()
}

export function networkOf(story: WayStory): OneShotNetwork {
  return { log: story.log, summary: () => story.summary() }
}

/** Nothing more is carried, and all that was is written down. */
export async function finished(story: Pick<WayStory, 'finish'> | undefined): Promise<Released> {
  return story ? { network: await story.finish() } : {}
}
