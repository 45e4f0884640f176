/**
 * Follows each sandbox of a platform from its birth to its end: what its network decided and how it ended go into the trail, what looks wrong is told. It reads what the engine tells
 * anyway, so that no program waits for it; where it is too slow, because the disk is, what it missed is counted and told too.
 */
import type { Anomaly } from '../contract/anomalies.js'
import type { AuditEntry, AuditTrail } from '../contract/audit.js'
import type { SandboxEvent } from '../contract/lifetimes.js'
import type { NetworkRecord } from '../contract/network.js'
import type { Platform, SandboxInfo } from '../contract/platform.js'
import { AnomalyDetector } from './anomalies.js'
import { RecordCopy } from './record-copy.js'
import { shownValue } from './shown.js'

export interface WatchOptions {
  readonly trail: AuditTrail
  readonly tenant: string
  onAnomaly(info: SandboxInfo, anomaly: Anomaly): void
}

export class Watch {
  readonly #options: WatchOptions
  readonly #agents = new Map<string, string>()

  constructor(options: WatchOptions) {
    this.#options = options
  }

  agentOf(sandbox: string): string | undefined {
    return this.#agents.get(sandbox)
  }

  /** Begins before this returns; resolves when the sandbox is over and all of it is told. */
  follow(platform: Pick<Platform, 'life' | 'network'>, info: SandboxInfo): Promise<void> {
    const { id, spec } = info
    const detector = new AnomalyDetector()
    const events = platform.life.events(id)
    const records = spec.network === false ? undefined : platform.network.log(id)
    if (spec.agent !== undefined) this.#agents.set(id, spec.agent)
    const followed = [this.#events(events, { info, detector }), ...(records ? [this.#records(records, { info, detector })] : [])]
    return Promise.all(followed).then(() => {
      this.#agents.delete(id)
    })
  }

  /** Of a single run, whose story is for one reader: it is read here whether or not anyone else does, and handed on. */
  retell(records: AsyncIterable<NetworkRecord>, info: SandboxInfo): AsyncIterable<NetworkRecord> {
    const copy = new RecordCopy()
    const followed = { info, detector: new AnomalyDetector() }
    const reading = async (): Promise<void> => {
      for await (const record of records) {
        copy.take(record)
        await this.#record(record, followed)
      }
    }
    // What breaks off is over.
    reading().then(
      () => copy.end(),
      () => copy.end(),
    )
    return copy
  }

  async #events(events: AsyncIterable<SandboxEvent>, { info, detector }: Followed): Promise<void> {
    let reason = 'its platform ended'
    try {
      for await (const event of events) {
        for (const anomaly of detector.event(event, performance.now())) await this.#anomaly(anomaly, info)
        if (event.type === 'closed') reason = event.reason
      }
    } catch (error) {
      // It was gone before it could be listened to.
      reason = error instanceof Error ? error.message : String(error)
    }
    await this.#tell({ act: 'sandbox.end', details: { reason } }, info)
  }

  async #records(records: AsyncIterable<NetworkRecord>, followed: Followed): Promise<void> {
    try {
      for await (const record of records) await this.#record(record, followed)
    } catch {
      // It ended with its sandbox, whose end is told.
    }
  }

  async #record(record: NetworkRecord, { info, detector }: Followed): Promise<void> {
    for (const anomaly of detector.attempt(record, performance.now())) await this.#anomaly(anomaly, info)
    await this.#tell({ act: 'network.decision', details: shownValue(record) as Record<string, never> }, info)
  }

  async #anomaly(anomaly: Anomaly, info: SandboxInfo): Promise<void> {
    this.#options.onAnomaly(info, anomaly)
    await this.#tell({ act: 'anomaly', details: { ...anomaly } }, info)
  }

  async #tell(entry: Pick<AuditEntry, 'act' | 'details'>, { id, spec }: SandboxInfo): Promise<void> {
    const { trail, tenant } = this.#options
    const whose = { actor: 'system', tenant, sandbox: id, ...(spec.agent !== undefined && { agent: spec.agent }) }
    // Rejected only when the trail is closed, with everything.
    await trail.tell({ ...entry, ...whose }).catch(() => undefined)
  }
}

interface Followed {
  readonly info: SandboxInfo
  readonly detector: AnomalyDetector
}
