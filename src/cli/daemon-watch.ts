import { statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** What a daemon looks at to know whether anybody needs it. */
interface DaemonNeeds {
  /** Connections that are open. */
  readonly connections: () => number
  /** Sandboxes that it holds. */
  readonly sandboxes: () => Promise<number>
  readonly socket: string
  readonly idleMs: number
  readonly signal: AbortSignal
}

const mostBetweenMs = 1000
const leastBetweenMs = 20

/** Why it is time to go. */
type Reason = 'idle' | 'unreachable'

/** Resolves when nothing was held and nobody came for a while, or nobody can come any more. Rejects when the signal aborts. */
export async function untilUnneeded({ connections, sandboxes, socket, idleMs, signal }: DaemonNeeds): Promise<Reason> {
  const own = identityOf(socket)
  let neededAt = performance.now()
  for (;;) {
    await sleep(Math.max(leastBetweenMs, Math.min(mostBetweenMs, idleMs / 4)), undefined, { signal })
    if (identityOf(socket) !== own) return 'unreachable'
    const held = await sandboxes()
    if (connections() > 0 || held > 0) neededAt = performance.now()
    else if (performance.now() - neededAt >= idleMs) return 'idle'
  }
}

function identityOf(socket: string): string | undefined {
  const status = statSync(socket, { throwIfNoEntry: false })
  return status && `${status.dev}:${status.ino}`
}
