import type { AuditStore, StoredRecord } from './store.js'

const rowsAtOnce = 500

/** In order, some at a time: whoever reads a long chain lets others in between. */
export async function* recordsUpTo(
  store: AuditStore,
  { last, signal }: { readonly last: number; readonly signal: AbortSignal | undefined },
): AsyncGenerator<readonly StoredRecord[]> {
  for (let after = 0; after < last; ) {
    signal?.throwIfAborted()
    const rows = store.find({ filter: {}, order: 'oldest', after, limit: rowsAtOnce }).filter(({ number }) => number <= last)
    if (rows.length === 0) return
    yield rows
    after = rows.at(-1)?.number ?? last
    await new Promise((resolve) => setImmediate(resolve))
  }
}
