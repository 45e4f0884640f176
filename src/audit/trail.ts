import {
  type Appended,
  type AuditCheckpoint,
  type AuditEntry,
  type AuditFilter,
  type AuditHead,
  type AuditPage,
  type AuditPageRequest,
  type AuditTrail,
  type AuditVerification,
  auditEntrySchema,
  auditHeadSchema,
} from '../contract/audit.js'
import { canonicalJson, presentable } from '../contract/canonical-json.js'
import { SandboxError } from '../contract/errors.js'
import type { Json } from '../contract/posture.js'
import { parseWith } from '../policy/refusal.js'
import { type ChainEnd, chainStart, type Link, linkAfter, parseRecord, sha256 } from './chain.js'
import { exportChain } from './export.js'
import { parseAuditFilter, parseAuditPage } from './filter.js'
import { AppendQueue } from './queue.js'
import { recordsUpTo } from './records.js'
import { redact, redactText } from './redact.js'
import type { Signing } from './signing.js'
import type { AuditStore, Batch, StoredEnd } from './store.js'
import { Tails } from './tail.js'
import { verifyChain } from './verification.js'

export interface TrailOptions {
  readonly store: AuditStore
  readonly signing: Signing
  /** How much could still be written where the store is. */
  freeBytes(): number
  /** With less, nothing new is taken, so that there is room for how what is under way ends. */
  readonly leastFreeBytes?: number
  /** Told how long a record took until it was on the disk. */
  readonly onAppended?: (ms: number) => void
}

const usuallyFree = 16 * 2 ** 20
const roomForMs = 200
const mostDetailBytes = 256 * 1024
const mostVerifications = 3

/** The chain of one store. */
export class Trail implements AuditTrail {
  readonly #options: TrailOptions
  readonly #queue: AppendQueue
  readonly #tails: Tails
  /** What this process saw last: whoever takes the store back behind it is noticed. */
  #seen: ChainEnd = chainStart
  #lookedAt = -Infinity

  constructor(options: TrailOptions) {
    this.#options = options
    this.#queue = new AppendQueue((entries, onWritten) => this.#write(entries, onWritten))
    this.#tails = new Tails(options.store)
  }

  async append(entry: AuditEntry, { onWritten }: { readonly onWritten?: () => void } = {}): Promise<Appended> {
    const begunAt = performance.now()
    const written = writable(entry)
    this.#checkRoom()
    const appended = await this.#queue.append(written, onWritten)
    this.#options.onAppended?.(performance.now() - begunAt)
    return appended
  }

  async tell(entry: AuditEntry): Promise<Appended> {
    return this.#queue.owe(writable(entry))
  }

  async finish(
    begun: Appended,
    ending: Pick<AuditEntry, 'outcome' | 'receipt' | 'details' | 'sandbox'>,
    options: { readonly mayWait?: boolean } = {},
  ): Promise<Appended> {
    const { act, actor, tenant, agent, sandbox, request } = begun.entry
    const same = { act, actor, ...(tenant && { tenant }), ...(agent && { agent }), ...(sandbox && { sandbox }), ...(request && { request }) }
    return this.#queue.owe(writable({ ...same, ...ending, of: begun.number }), options)
  }

  async list(filter: AuditFilter = {}, page: AuditPageRequest = {}): Promise<AuditPage> {
    await this.#queue.hurry()
    const { order, after, limit } = parseAuditPage(page)
    const rows = this.#options.store.find({ filter: parseAuditFilter(filter), order, after, limit: limit + 1 })
    const items = rows.slice(0, limit).map(({ number, text }) => {
      const record = parseRecord(text)
      if (!record) throw new SandboxError('broken', `record ${number} of the audit trail cannot be read`, { hint: 'glovebox audit verify' })
      return record
    })
    const last = items.at(-1)
    return { items, ...(rows.length > limit && last && { next: String(last.number) }) }
  }

  tail(filter: AuditFilter = {}, options: { readonly signal?: AbortSignal; readonly last?: number } = {}) {
    return this.#tails.follow(parseAuditFilter(filter), options)
  }

  async head(): Promise<AuditHead> {
    await this.#queue.hurry()
    const { head } = this.#options.store.end()
    if (head === undefined) return this.#sign(chainStart)
    return parseWith(auditHeadSchema, head, 'head')
  }

  async verify(options: { readonly anchor?: AuditHead; readonly signal?: AbortSignal } = {}): Promise<AuditVerification> {
    await this.#queue.hurry()
    for (let attempt = 1; ; attempt++) {
      const end = this.#options.store.end()
      const found = await this.#verifyUpTo(end, options)
      const now = this.#options.store.end()
      // What another process pruned meanwhile is no damage.
      if (found.valid || attempt === mostVerifications || JSON.stringify(now.checkpoint) === JSON.stringify(end.checkpoint)) return found
    }
  }

  async *export({ signal }: { readonly signal?: AbortSignal } = {}): AsyncGenerator<string> {
    await this.#queue.hurry()
    yield* exportChain(this.#options.store, signal)
  }

  async prune(before: string, { actor }: { readonly actor: string }): Promise<number> {
    const last = this.#options.store.lastBefore(parseAuditFilter({ until: before }).until ?? before)
    if (!last) return 0
    const end = parseRecord(last.text)
    const intact = await this.verify()
    if (!end || !intact.valid)
      throw new SandboxError('conflict', 'the audit trail is not as it was written, so nothing is taken away from it', { hint: 'glovebox audit verify' })
    const { number, hash } = end
    const begun = await this.append({ act: 'audit.prune', actor, details: { number, hash, before } })
    const unsigned = { schema: 'glovebox-audit-checkpoint/1' as const, number, hash, at: new Date().toISOString() }
    const records = await this.#options.store.prune(this.#options.signing.sign(unsigned) satisfies AuditCheckpoint)
    await this.finish(begun, { outcome: { kind: 'ok' }, details: { records } })
    return records
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#queue.close()
    this.#tails.close()
    this.#options.store.close()
  }

  async #write(entries: readonly AuditEntry[], onWritten: (links: readonly Link[]) => void): Promise<readonly Link[]> {
    let links: readonly Link[] = []
    let end = this.#seen
    const make = (found: StoredEnd | undefined): Batch => {
      end = found ? this.#endOf(found) : this.#seen
      const at = new Date().toISOString()
      links = entries.map((entry) => {
        const link = linkAfter(end, entry, at)
        end = link.record
        return link
      })
      return { links, head: this.#sign(end) }
    }
    await this.#options.store.append(make, () => onWritten(links))
    this.#seen = { number: end.number, hash: end.hash }
    this.#tails.wake()
    return links
  }

  /** Where the next record goes. A chain that does not end where its head says was tampered with, and going on would hide it. */
  #endOf({ newest, head, checkpoint }: StoredEnd): ChainEnd {
    if (newest === undefined && head === undefined && checkpoint === undefined && this.#seen.number === 0) return chainStart
    const told = auditHeadSchema.safeParse(head).data
    const record = newest && parseRecord(newest.text)
    const isEnd = told !== undefined && record?.number === told.number && record.hash === told.hash && told.number >= this.#seen.number
    const isOurs = told !== undefined && told.number === this.#seen.number && told.hash === this.#seen.hash
    if (isEnd && (isOurs || this.#options.signing.problemOf(told) === undefined)) return { number: told.number, hash: told.hash }
    throw new SandboxError('unavailable', 'the audit trail does not end where its signed head says, so nothing is added to it', {
      hint: 'glovebox audit verify',
    })
  }

  #sign({ number, hash }: ChainEnd): AuditHead {
    return this.#options.signing.sign({ schema: 'glovebox-audit-head/1' as const, number, hash, at: new Date().toISOString() })
  }

  async #verifyUpTo(end: StoredEnd, { anchor, signal }: { readonly anchor?: AuditHead; readonly signal?: AbortSignal }): Promise<AuditVerification> {
    const { store, signing } = this.#options
    if (end.newest === undefined && end.head === undefined && end.checkpoint === undefined && !anchor)
      return { valid: true, records: 0, head: this.#sign(chainStart), trusted: true }
    return verifyChain({
      ...end,
      records: recordsUpTo(store, { last: end.newest?.number ?? 0, signal }),
      misfiled: (records) => store.misfiled(records),
      ...(anchor && { anchor }),
      problemOf: (document) => signing.problemOf(document),
      trusted: true,
    })
  }

  #checkRoom(): void {
    const { leastFreeBytes = usuallyFree } = this.#options
    const now = performance.now()
    if (now - this.#lookedAt < roomForMs) return
    const free = this.#options.freeBytes()
    if (free < leastFreeBytes) {
      const words = `${Math.floor(free / 1024)} KiB are left for the audit trail, which keeps ${Math.floor(leastFreeBytes / 1024)} KiB for what is under way`
      throw new SandboxError('full', words, { hint: 'glovebox audit prune --before 90d' })
    }
    this.#lookedAt = now
  }
}

/** Without secrets of known forms, within its bounds, and as JSON has it. */
function writable(entry: AuditEntry): AuditEntry {
  const { details, outcome, ...rest } = presentable(entry) as AuditEntry
  const shown = details && boundedDetails(redact(details) as Record<string, Json>)
  const told = outcome?.kind === 'error' ? { ...outcome, message: redactText(outcome.message).slice(0, 4000) } : outcome
  return parseWith(auditEntrySchema, { ...rest, ...(told && { outcome: told }), ...(shown && { details: shown }) }, 'audit entry')
}

function boundedDetails(details: Record<string, Json>): Record<string, Json> {
  const text = canonicalJson(details)
  const bytes = Buffer.byteLength(text)
  return bytes <= mostDetailBytes ? details : { cut: true, bytes, sha256: sha256(text) }
}
