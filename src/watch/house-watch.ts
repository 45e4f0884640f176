/** All that watches a server: figures, spans and the log, behind the few hooks that a server and a house have for them. */
import type { PlatformEvents } from '../contract/events.js'
import type { Platform } from '../contract/platform.js'
import type { RequestLine } from '../contract/wire/request-line.js'
import { meterEvents } from './event-meters.js'
import { type Exposition, expose } from './exposition.js'
import type { LogFacts, Logger } from './logger.js'
import { createMeters } from './meters.js'
import { meterProcess, type ProcessMeterOptions } from './process-meters.js'
import { Registry } from './registry.js'
import type { Tracing } from './tracing.js'
import { watchedPlatform } from './watched-platform.js'

type AnsweredRequest = Omit<RequestLine, 'at'>

export interface HouseWatchOptions extends ProcessMeterOptions {
  /** Not given: nothing is logged. */
  readonly logger?: Logger
  /** Not given: nothing is traced. */
  readonly tracing?: Tracing
}

export interface HouseWatch extends AsyncDisposable {
  /** A platform whose calls are counted, timed and traced. */
  platform(platform: Platform): Platform
  /** Counts what happens until the house is over. */
  follow(events: PlatformEvents): void
  /** For whoever reads figures, in the form that they prefer. */
  metrics(accept?: string): Exposition
  answered(request: AnsweredRequest): void
  /** A record of the audit trail was on the disk after so long. */
  appended(ms: number): void
  /** What is done for a request belongs to the trace that it names. */
  within<Result>(headers: Readonly<Record<string, unknown>>, act: () => Result): Result
}

/** What the routes of a server have; whatever else comes is none of them. */
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']

export function createHouseWatch({ logger, tracing, ...options }: HouseWatchOptions): HouseWatch {
  const registry = new Registry()
  const meters = createMeters(registry)
  const process = meterProcess(registry, options)
  const spans = tracing?.spans
  const over = new AbortController()
  const followed: Promise<void>[] = []
  return {
    platform: (platform) => watchedPlatform(platform, { meters, spans }),
    follow: (events) => void followed.push(meterEvents(events, meters, over.signal), ...(spans ? [spans.follow(events, over.signal)] : [])),
    metrics: (accept) => expose(registry.read(), accept),
    answered: (answered) => {
      const { method, route, status, ms } = answered
      const known = route === '' ? 'none' : route
      meters.requests.add({ method: methods.includes(method) ? method : 'other', route: known, status: String(status) })
      meters.requestTimes.observe(ms / 1000, { route: known })
      if (logger) logAnswered(logger, answered)
    },
    appended: (ms) => meters.auditAppends.observe(ms / 1000),
    within: (headers, act) => (tracing ? tracing.within(headers, act) : act()),
    [Symbol.asyncDispose]: async () => {
      over.abort()
      process[Symbol.dispose]()
      await Promise.allSettled(followed)
      await tracing?.[Symbol.asyncDispose]()
    },
  }
}

/** A defect of ours is an error, a refusal is not. */
function logAnswered(logger: Logger, { defect, ...line }: AnsweredRequest): void {
  const facts: LogFacts = { ...line, ...(defect !== undefined && { defect }) }
  if (defect !== undefined) logger.error('a request failed', facts)
  else logger.info('answered', facts)
}
