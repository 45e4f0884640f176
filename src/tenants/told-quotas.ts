import { SandboxError } from '../contract/errors.js'
import type { EventSink } from '../contract/events.js'
import type { Quotas } from '../contract/tenants.js'

/** The same quotas, of which each refusal is told to those who listen. */
export function toldQuotas(quotas: Quotas, sink: EventSink): Quotas {
  return {
    reserve: (tenant, request) =>
      quotas.reserve(tenant, request).catch((error: unknown) => {
        if (error instanceof SandboxError && error.code === 'quota') sink.tell({ type: 'quota', tenant, ...numbersOf(error), reason: error.message })
        throw error
      }),
    egressOf: (tenant) => quotas.egressOf(tenant),
    usage: (tenant) => quotas.usage(tenant),
  }
}

function numbersOf({ details = {}, retryAfterMs }: SandboxError) {
  const { quota, used, limit } = details as Readonly<Record<string, unknown>>
  return { quota: String(quota), used: Number(used), limit: Number(limit), ...(retryAfterMs !== undefined && { retryAfterMs }) }
}
