import type { NetworkFacts, NetworkRecord, NetworkSummary } from '../contract/network.js'
import type { Clock } from './clock.js'
import { NetworkLog } from './log.js'
import { lineOf, pathOf } from './log-text.js'
import { NetworkTally } from './summary.js'

/** An attempt from its beginning. */
export interface Draft extends Omit<NetworkFacts, 'sandbox'> {
  readonly process?: number
  readonly time: string
  readonly startedAt: number
}

type Known = Omit<NetworkFacts, 'sandbox' | 'address'> & { readonly process?: number }
type Ended = Pick<NetworkRecord, 'verdict' | 'rule' | 'reason' | 'status'> & Partial<Pick<NetworkRecord, 'bytesUp' | 'bytesDown'>>

/** The book of one sandbox: its log and its sums. */
export class Records {
  readonly #sandbox: string
  readonly #clock: Clock
  readonly #log = new NetworkLog()
  readonly #tally = new NetworkTally()

  constructor(sandbox: string, clock: Clock) {
    this.#sandbox = sandbox
    this.#clock = clock
  }

  draft({ door, host, port, scheme, method, path, process }: Known): Draft {
    return {
      door,
      host: lineOf(host, 'host'),
      port,
      scheme,
      ...(method !== undefined && { method: lineOf(method, 'method') }),
      ...(path !== undefined && { path: pathOf(path) }),
      ...(process !== undefined && { process }),
      time: new Date().toISOString(),
      startedAt: this.#clock.now(),
    }
  }

  facts({ time: _time, startedAt: _startedAt, process: _process, ...facts }: Draft): NetworkFacts {
    return { sandbox: this.#sandbox, ...facts }
  }

  write(draft: Draft, { verdict, rule, reason, status, bytesUp = 0, bytesDown = 0 }: Ended): void {
    const { time, startedAt, process } = draft
    const record: NetworkRecord = {
      time,
      ...this.facts(draft),
      ...(process !== undefined && { process }),
      ...(status !== undefined && { status }),
      bytesUp,
      bytesDown,
      durationMs: Math.round((this.#clock.now() - startedAt) * 1000) / 1000,
      verdict,
      rule,
      reason: lineOf(reason, 'reason'),
    }
    this.#tally.add(record)
    this.#log.append(record)
  }

  read(signal?: AbortSignal): AsyncIterable<NetworkRecord> {
    return this.#log.read(signal)
  }

  get summary(): NetworkSummary {
    return this.#tally.summary
  }

  close(): void {
    this.#log.close()
  }
}
