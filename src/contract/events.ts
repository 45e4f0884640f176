/** What happens on a platform as a whole, told to whoever listens: of all its sandboxes, its pools, and what guards them. */
import type { AnomalyKind } from './anomalies.js'
import type { ErrorCode } from './errors.js'
import type { SandboxEvent } from './lifetimes.js'
import type { NetworkRecord } from './network.js'
import type { CallOptions } from './platform.js'
import type { Fresh, PoolStatus } from './pools.js'
import type { Tier } from './spec.js'

/** Whose a sandbox is. */
export interface EventOrigin {
  readonly sandbox: string
  readonly name?: string
  readonly agent?: string
  readonly tenant?: string
}

/** What is told of one sandbox to those that listen to it alone is told here too. */
type SandboxNews = Exclude<SandboxEvent, { readonly type: 'missed' }> extends infer Event ? (Event extends SandboxEvent ? Omit<Event, 'at'> : never) : never

export type PlatformEventFacts =
  | (EventOrigin & SandboxNews)
  | (EventOrigin & {
      readonly type: 'created'
      readonly driver: string
      readonly tier: Tier
      readonly template: string
      readonly fresh: Fresh
      /** As `SandboxInfo` has it. */
      readonly pool?: 'hit' | 'miss'
    })
  /** A connection or request that was not denied is over. */
  | (EventOrigin & { readonly type: 'connected'; readonly attempt: NetworkRecord })
  /** How many wait in a pool, and for one, has changed. Told at most a few times a second. */
  | { readonly type: 'pool'; readonly pool: string; readonly status: PoolStatus }
  /** A request was refused because its tenant has used up what it may; or the last of what it may send and receive in a day was taken. */
  | {
      readonly type: 'quota'
      readonly tenant: string
      readonly quota: string
      readonly used: number
      readonly limit: number
      readonly retryAfterMs?: number
      readonly reason: string
    }
  | (Partial<EventOrigin> & { readonly type: 'anomaly'; readonly kind: AnomalyKind; readonly reason: string })
  /** A platform began where another had ended without closing everything; `lost` follows for each sandbox that went with it. */
  | { readonly type: 'restarted'; readonly lost: number; readonly reason: string }
  | (EventOrigin & { readonly type: 'lost'; readonly code: ErrorCode; readonly reason: string })

/** Only to a reader that was too slow, or asks for what is not kept any more: so many events before this one are not to be had. Undefined: nobody knows how many. */
interface MissedEvents {
  readonly type: 'missed'
  readonly count?: number
  readonly reason: string
}

export type PlatformEvent = (PlatformEventFacts | MissedEvents) & {
  /** When it was told, ISO 8601. */
  readonly at: string
  /** Where a reader goes on who has read this one. */
  readonly cursor: string
}

export type PlatformEventType = PlatformEvent['type']

const isEventType: Readonly<Record<PlatformEventType, true>> = {
  created: true,
  exit: true,
  limited: true,
  denied: true,
  connected: true,
  paused: true,
  resumed: true,
  expired: true,
  closed: true,
  pool: true,
  quota: true,
  anomaly: true,
  restarted: true,
  lost: true,
  missed: true,
}
export const platformEventTypes = Object.keys(isEventType) as readonly PlatformEventType[]

export interface ListenOptions extends CallOptions {
  /** Those after the one with this cursor, as far as they are kept, or `oldest` for all that are; only what is told from now on when not given. */
  readonly after?: string
  /** Only these; all when not given. `missed` is always told. */
  readonly types?: readonly PlatformEventType[]
  readonly sandbox?: string
  readonly agent?: string
  /** Nothing of any other tenant's, nor of none's, nor how much there was of it. */
  readonly tenant?: string
}

export interface PlatformEvents {
  /** Until it is left or aborted, or the platform is over. A reader that is too slow loses the oldest, and is told how many; it never holds anyone up. */
  listen(options?: ListenOptions): AsyncIterable<PlatformEvent>
}

/** Where what happens is told. Never throws, never waits. */
export interface EventSink {
  tell(facts: PlatformEventFacts): void
}
