import type { AuditAct, AuditRecord, AuditTrail } from '../contract/audit.js'

export interface LostSandbox {
  readonly sandbox: string
  readonly tenant: string
  readonly agent?: string
}

const reason = 'the server ended without closing it; nothing of it is left'

/**
 * Tells, in the trail, that a server begins, and before it of each sandbox that an earlier one neither closed nor saw end: nothing is taken over, and nothing is silent about it. Such
 * sandboxes are gone: they end with the process that made them.
 */
export async function beginServing(
  trail: AuditTrail,
  details: NonNullable<AuditRecord['details']>,
): Promise<{ readonly lost: readonly LostSandbox[]; readonly reason: string }> {
  const since = await latestStart(trail)
  const live = new Map<string, LostSandbox>()
  for await (const record of recordsOf(trail, 'sandbox.create', since)) if (isMade(record)) live.set(record.sandbox, lostOf(record, record.sandbox))
  for await (const record of recordsOf(trail, 'snapshot.fork', since)) for (const id of forksIn(record)) live.set(id, lostOf(record, id))
  for (const act of ['sandbox.end', 'sandbox.lost'] as const) for await (const { sandbox } of recordsOf(trail, act, since)) live.delete(sandbox ?? '')
  for (const { sandbox, tenant, agent } of live.values())
    await trail.append({ act: 'sandbox.lost', actor: 'system', sandbox, tenant, ...(agent !== undefined && { agent }), details: { reason } })
  await trail.append({ act: 'server.start', actor: 'system', details: { ...details, lost: live.size } })
  return { lost: [...live.values()], reason }
}

/** What was made before the latest start was told of at that start. */
async function latestStart(trail: AuditTrail): Promise<number> {
  const { items } = await trail.list({ act: 'server.start' }, { limit: 1 })
  return items[0]?.number ?? 0
}

async function* recordsOf(trail: AuditTrail, act: AuditAct, since: number): AsyncGenerator<AuditRecord> {
  for (let cursor: string | undefined = String(since); cursor !== undefined; ) {
    const { items, next }: Awaited<ReturnType<AuditTrail['list']>> = await trail.list({ act }, { cursor, from: 'oldest', limit: 1000 })
    yield* items
    cursor = next
  }
}

function isMade(record: AuditRecord): record is AuditRecord & { readonly sandbox: string } {
  return record.of !== undefined && record.outcome?.kind === 'ok' && record.sandbox !== undefined
}

function forksIn({ of, details }: AuditRecord): readonly string[] {
  const made = of === undefined ? undefined : details?.sandboxes
  return Array.isArray(made) ? made.filter((id) => typeof id === 'string') : []
}

function lostOf({ tenant = '', agent }: AuditRecord, sandbox: string): LostSandbox {
  return { sandbox, tenant, ...(agent !== undefined && { agent }) }
}
