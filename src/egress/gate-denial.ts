import type { NetworkFacts } from '../contract/network.js'
import { entryFor } from '../policy/network-rules.js'
import type { Denial, DenialCode } from './gate-types.js'
import { lineOf } from './log-text.js'

/** Why an attempt ends here. */
export interface Refusal {
  readonly code: DenialCode
  /** The entry that decided; undefined when none did. */
  readonly rule?: string
  readonly why: string
}

const statuses: Readonly<Record<DenialCode, number>> = {
  unparsable: 400,
  protocol: 400,
  'not-allowed': 403,
  blocked: 403,
  private: 403,
  method: 403,
  path: 403,
  opaque: 403,
  declined: 403,
  budget: 429,
  unresolved: 502,
  busy: 503,
  closed: 503,
}

/** In words for the guest: what was denied, why, and what would allow it. */
export function denialOf({ code, why }: Refusal, { host, port }: NetworkFacts): Denial {
  const reason = lineOf(why, 'reason')
  const wouldAllow = code === 'not-allowed' || code === 'declined' ? entryFor(host, port) : undefined
  const target = host === '' ? 'this' : port === 0 ? lineOf(host, 'host') : `${lineOf(host, 'host')} port ${port}`
  return { allowed: false, code, status: statuses[code], reason, wouldAllow, message: `${target} is denied: ${reason}${remedy(code, wouldAllow)}` }
}

function remedy(code: DenialCode, wouldAllow: string | undefined): string {
  if (wouldAllow !== undefined) return `; network.allow: ['${wouldAllow}'] would allow it`
  if (code === 'private') return "; only an operator's policy can allow it, by ceiling.network.private"
  if (code === 'busy') return '; a higher network.maxConnections would allow more'
  if (code === 'budget') return '; network.bytes and network.connectionBytes limit it'
  return ''
}
