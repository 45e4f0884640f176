import { setTimeout as sleep } from 'node:timers/promises'

/** Time as the way out sees it. */
export interface Clock {
  /** Milliseconds that never go back. */
  now(): number
  /** Rejects when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

export const realClock: Clock = {
  now: () => performance.now(),
  sleep: async (ms, signal) => {
    await sleep(ms, undefined, { signal, ref: false })
  },
}
