import type { AuditTrail } from '../contract/audit.js'

const againMs = 60_000
const mostKnown = 10_000

interface Known {
  toldAt: number
  /** Since then. */
  count: number
}

/**
 * Uses of keys in the audit trail: the first of a key from a source at once, then at most one record a minute, which says how many there were since. What was refused likewise,
 * by source. Every act has a record with its key anyway.
 */
export class KeyUses {
  readonly #trail: Pick<AuditTrail, 'tell'>
  readonly #known = new Map<string, Known>()
  readonly #now: () => number

  constructor(trail: Pick<AuditTrail, 'tell'>, now: () => number) {
    this.#trail = trail
    this.#now = now
  }

  used({ key, tenant, source }: { readonly key: string; readonly tenant: string; readonly source: string | undefined }): void {
    const count = this.#count(`${key} ${source ?? ''}`)
    if (count > 0) this.#tell({ act: 'key.use', actor: key, tenant, details: { count, ...sourceOf(source) } })
  }

  refused({ keyId, source }: { readonly keyId: string | undefined; readonly source: string | undefined }): void {
    const count = this.#count(`refused ${source ?? ''}`)
    // Whether there is such a key is not looked at: what was claimed is written down.
    if (count > 0) this.#tell({ act: 'key.refuse', actor: 'system', details: { count, ...(keyId !== undefined && { claimed: keyId }), ...sourceOf(source) } })
  }

  /** 0 when it is not to be told now. */
  #count(name: string): number {
    const now = this.#now()
    const known = this.#known.get(name)
    if (known && now - known.toldAt < againMs) {
      known.count += 1
      return 0
    }
    this.#known.delete(name)
    this.#known.set(name, { toldAt: now, count: 0 })
    if (this.#known.size > mostKnown) this.#known.delete(this.#known.keys().next().value as string)
    return 1 + (known?.count ?? 0)
  }

  #tell(entry: Parameters<AuditTrail['tell']>[0]): void {
    // It is written before whatever is appended after it; it is rejected only when the trail is closed, with everything.
    this.#trail.tell(entry).catch(() => undefined)
  }
}

function sourceOf(source: string | undefined): { readonly source?: string } {
  return source === undefined ? {} : { source: source.slice(0, 64) }
}
