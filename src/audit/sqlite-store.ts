import type { AuditCheckpoint, AuditFilter } from '../contract/audit.js'
import type { SqlDatabase, SqlRow, SqlValue } from '../sys/sqlite.js'
import { type Link, parseRecord } from './chain.js'
import type { AuditStore, Batch, StoredEnd, StoredRecord, StoreQuery } from './store.js'

/** What records are found by; each is also in the text, which alone counts. */
const columns = ['at', 'act', 'actor', 'tenant', 'agent', 'sandbox', 'request'] as const

export const auditTables = `
CREATE TABLE IF NOT EXISTS records (
  number INTEGER PRIMARY KEY, text TEXT NOT NULL,
  at TEXT NOT NULL, act TEXT NOT NULL, actor TEXT NOT NULL, tenant TEXT, agent TEXT, sandbox TEXT, request TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS records_by_tenant ON records (tenant, number);
CREATE INDEX IF NOT EXISTS records_by_sandbox ON records (sandbox, number) WHERE sandbox IS NOT NULL;
CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT;
`

const insertion = `INSERT INTO records (number, text, ${columns.join(', ')}) VALUES (?, ?, ${columns.map(() => '?').join(', ')})`
const newest = 'SELECT number, text FROM records ORDER BY number DESC LIMIT 1'
const mark = 'INSERT INTO marks (name, text) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET text = excluded.text'

/** How each part of a filter is asked. */
const conditions: { readonly [Name in keyof Required<AuditFilter>]: string } = {
  tenant: 'tenant = ?',
  agent: 'agent = ?',
  sandbox: 'sandbox = ?',
  actor: 'actor = ?',
  act: 'act = ?',
  request: 'request = ?',
  since: 'at >= ?',
  until: 'at < ?',
}

export class SqliteAuditStore implements AuditStore {
  readonly #database: SqlDatabase
  /** That of the database when something was added here last; undefined when nothing was, or it is not certain that it was. */
  #ownVersion: number | undefined

  constructor(database: SqlDatabase) {
    this.#database = database
  }

  async append(make: (end: StoredEnd | undefined) => Batch, onWritten?: () => void): Promise<void> {
    const known = this.#ownVersion
    this.#ownVersion = undefined
    const version = await this.#database.write(() => {
      const now = this.#database.version()
      const { links, head } = make(now === known ? undefined : this.#end())
      for (const link of links) this.#insert(link)
      this.#database.run(mark, 'head', JSON.stringify(head))
      return now
    })
    onWritten?.()
    await this.#database.sync()
    this.#ownVersion = version
  }

  find({ filter, order, after, limit }: StoreQuery): readonly StoredRecord[] {
    const isNewest = order === 'newest'
    const asked = (Object.keys(conditions) as (keyof AuditFilter)[]).filter((name) => filter[name] !== undefined)
    const where = [...asked.map((name) => conditions[name]), ...(after === undefined ? [] : [isNewest ? 'number < ?' : 'number > ?'])]
    const values: SqlValue[] = [...asked.map((name) => filter[name] as string), ...(after === undefined ? [] : [after]), limit]
    const text = where.length === 0 ? '' : ` WHERE ${where.join(' AND ')}`
    const rows = this.#database.all(`SELECT number, text FROM records${text} ORDER BY number ${isNewest ? 'DESC' : 'ASC'} LIMIT ?`, ...values)
    return rows.map(storedOf)
  }

  end(): StoredEnd {
    return this.#database.read(() => this.#end())
  }

  close(): void {
    this.#database.close()
  }

  lastBefore(time: string): StoredRecord | undefined {
    // Clocks are set back now and then: what is taken away is a beginning of the chain, so nothing newer may be in it.
    const first = this.#database.get('SELECT number, text FROM records WHERE at >= ? ORDER BY number ASC LIMIT 1', time)
    if (first === undefined) return this.#database.all(newest).map(storedOf)[0]
    return this.#database.all('SELECT number, text FROM records WHERE number < ? ORDER BY number DESC LIMIT 1', first.number as number).map(storedOf)[0]
  }

  async prune(checkpoint: AuditCheckpoint): Promise<number> {
    const removed = await this.#database.write(() => {
      this.#database.run(mark, 'checkpoint', JSON.stringify(checkpoint))
      return this.#database.run('DELETE FROM records WHERE number <= ?', checkpoint.number).changes
    })
    await this.#database.sync()
    return removed
  }

  misfiled(rows: readonly StoredRecord[]): number | undefined {
    const [first, last] = [rows[0]?.number ?? 0, rows.at(-1)?.number ?? 0]
    const filed = this.#database.all(`SELECT number, ${columns.join(', ')} FROM records WHERE number BETWEEN ? AND ? ORDER BY number`, first, last)
    const wrong = rows.find(({ text }, index) => columns.some((name) => (parseRecord(text)?.[name] ?? null) !== (filed[index]?.[name] ?? null)))
    return wrong?.number
  }

  #end(): StoredEnd {
    return { newest: this.#database.all(newest).map(storedOf)[0], head: this.#mark('head'), checkpoint: this.#mark('checkpoint') }
  }

  #insert({ record, text }: Link): void {
    this.#database.run(insertion, record.number, text, ...columns.map((name) => record[name] ?? null))
  }

  #mark(name: string): unknown {
    const row = this.#database.get('SELECT text FROM marks WHERE name = ?', name)
    try {
      return row && (JSON.parse(row.text as string) as unknown)
    } catch {
      // Whoever judges it is told that it is none.
      return null
    }
  }
}

function storedOf(row: SqlRow): StoredRecord {
  return { number: row.number as number, text: row.text as string }
}
