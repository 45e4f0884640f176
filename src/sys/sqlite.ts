/**
 * A database in one file of ours, for what must outlive the process: SQLite in WAL mode, by libsql, which is loaded when the first is opened.
 *
 * A commit here does not wait for the disk: its calls are synchronous, and a disk that takes its time would hold up everything else this process does. `sync` waits, beside
 * other work, until all that was committed is on the disk. That is what SQLite's own `synchronous=FULL` does within a commit, and on the same file: the log of a database in WAL
 * mode. What is moved from the log into the database is synced by SQLite before (the log) and after (the database), as `synchronous=NORMAL` has it, so at each moment one of the two
 * files holds it. Nobody locks the log file itself, so that opening and closing it here takes no lock away from SQLite.
 */
import { closeSync, constants, existsSync, fdatasync, openSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type Database from 'libsql'
import { SandboxError } from '../contract/errors.js'
import { folderError } from './folder-error.js'

export type SqlValue = string | number | null | Uint8Array
export type SqlRow = Readonly<Record<string, unknown>>

export interface SqlDatabase {
  run(sql: string, ...values: SqlValue[]): { readonly changes: number }
  get(sql: string, ...values: SqlValue[]): SqlRow | undefined
  all(sql: string, ...values: SqlValue[]): readonly SqlRow[]
  /** All that is asked for in it is of one moment. */
  read<T>(act: () => T): T
  /** All of it or nothing, and nobody else writes meanwhile. Waits for another process that does; `act` may be called again, and must not wait. */
  write<T>(act: () => T): Promise<T>
  /** Another number once somebody else has written to it; what is written here leaves it as it is. */
  version(): number
  /** When this resolves, all that was committed before is on the disk. */
  sync(): Promise<void>
  close(): void
}

/** Another process of ours writes a few rows at a time. */
const patienceMs = 10_000
const readableByOthers = 0o077
const pagesPerCheckpoint = 4000

export interface SqliteOptions {
  /** What makes its tables, each statement only where they are missing. */
  readonly schema: string
}

/** A file that only its owner can read, made when it is missing. Throws SandboxError('unsupported') where libsql has no program for this machine. */
export async function openSqlite(path: string, { schema }: SqliteOptions): Promise<SqlDatabase> {
  const Database = loadLibsql()
  try {
    makeFile(path)
    const database = new SqliteFile(path, new Database(path))
    await database.write(() => database.exec(schema))
    return database
  } catch (error) {
    throw sqlError(path, error)
  }
}

/** A package with a native program, which no bundle can hold: it is found from where this package lies. */
function loadLibsql(): typeof Database {
  try {
    return createRequire(import.meta.url)('libsql') as typeof Database
  } catch (error) {
    const machine = `${process.platform} ${process.arch}`
    throw new SandboxError(
      'unsupported',
      `keys, tenants and the audit trail are kept in SQLite, and libsql has no program for this machine here (${machine})`,
      {
        hint: 'npm install libsql',
        cause: error,
      },
    )
  }
}

/** SQLite gives its other files the mode of this one. */
function makeFile(path: string): void {
  try {
    closeSync(openSync(path, constants.O_CREAT | constants.O_RDWR | constants.O_NOFOLLOW, 0o600))
  } catch (error) {
    throw folderError(path, error)
  }
  const { uid, mode } = statSync(path)
  const ours = process.getuid?.() ?? uid
  if (uid !== ours) throw new SandboxError('unavailable', `${path} belongs to uid ${uid}, not to uid ${ours}`, { hint: `chown ${ours} ${path}` })
  if (mode & readableByOthers && process.platform !== 'win32')
    throw new SandboxError('unavailable', `${path} can be read by others (mode ${(mode & 0o777).toString(8)})`, { hint: `chmod 600 ${path}` })
}

class SqliteFile implements SqlDatabase {
  readonly #path: string
  readonly #database: Database.Database
  readonly #statements = new Map<string, Database.Statement>()
  #log: number | undefined

  constructor(path: string, database: Database.Database) {
    this.#path = path
    this.#database = database
    // Waiting for a lock inside a call holds up this process: a little here, the rest between two calls.
    for (const pragma of ['busy_timeout=100', 'journal_mode=WAL', 'synchronous=NORMAL', 'trusted_schema=OFF', `wal_autocheckpoint=${pagesPerCheckpoint}`])
      database.pragma(pragma)
  }

  exec(sql: string): void {
    this.#do(() => this.#database.exec(sql))
  }

  run(sql: string, ...values: SqlValue[]): { readonly changes: number } {
    return this.#do(() => this.#prepared(sql).run(values))
  }

  get(sql: string, ...values: SqlValue[]): SqlRow | undefined {
    return this.#do(() => this.#prepared(sql).get(values) as SqlRow | undefined)
  }

  all(sql: string, ...values: SqlValue[]): readonly SqlRow[] {
    return this.#do(() => this.#prepared(sql).all(values) as SqlRow[])
  }

  read<T>(act: () => T): T {
    return this.#do(() => this.#transaction('BEGIN', act))
  }

  async write<T>(act: () => T): Promise<T> {
    const until = performance.now() + patienceMs
    for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 50)) {
      try {
        return this.#transaction('BEGIN IMMEDIATE', act)
      } catch (error) {
        if (!isBusy(error) || performance.now() > until) throw sqlError(this.#path, error)
      }
      await sleep(pauseMs)
    }
  }

  version(): number {
    return this.get('PRAGMA data_version')?.data_version as number
  }

  async sync(): Promise<void> {
    this.#log ??= openSync(`${this.#path}-wal`, 'r')
    try {
      await promisify(fdatasync)(this.#log)
    } catch (error) {
      throw folderError(this.#path, error)
    }
  }

  close(): void {
    if (this.#log !== undefined) closeSync(this.#log)
    this.#log = undefined
    this.#statements.clear()
    // What is in the log alone is as good as what is in the database; moving it there keeps the log small, where there is room and nobody else reads.
    try {
      this.#database.pragma('wal_checkpoint(TRUNCATE)')
    } catch (error) {
      if (codeOf(error) === '') throw error
    }
    this.#database.close()
  }

  #transaction<T>(begin: 'BEGIN' | 'BEGIN IMMEDIATE', act: () => T): T {
    this.#prepared(begin).run()
    try {
      const result = act()
      this.#prepared('COMMIT').run()
      return result
    } catch (error) {
      // A full disk has rolled it back already.
      if (this.#database.inTransaction) this.#database.exec('ROLLBACK')
      throw error
    }
  }

  #do<T>(act: () => T): T {
    try {
      return act()
    } catch (error) {
      throw sqlError(this.#path, error)
    }
  }

  #prepared(sql: string): Database.Statement {
    const known = this.#statements.get(sql)
    if (known) return known
    const statement = this.#database.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }
}

/** Whether a database was made there before: opening one makes it. */
export function hasSqlite(path: string): boolean {
  return existsSync(path)
}

function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY')
}

function codeOf(error: unknown): string {
  const { code } = error as { readonly code?: unknown }
  return typeof code === 'string' ? code : ''
}

function sqlError(path: string, error: unknown): SandboxError {
  if (error instanceof SandboxError) return error
  const code = codeOf(error)
  const options = { cause: error, hint: `ls -l ${path}*` }
  if (code === 'SQLITE_FULL') return new SandboxError('full', `there is no room left on the disk of ${path}`, { cause: error, hint: `df -h ${path}` })
  if (code.startsWith('SQLITE_BUSY')) return new SandboxError('busy', `another process has kept ${path} locked for ${patienceMs / 1000} s`, options)
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) return new SandboxError('unavailable', `${path} is damaged: ${messageOf(error)}`, options)
  if (code.startsWith('SQLITE_IOERR') || code.startsWith('SQLITE_READONLY') || code.startsWith('SQLITE_CANTOPEN'))
    return new SandboxError('unavailable', `cannot write to ${path}: ${messageOf(error)}`, options)
  return new SandboxError('internal', `${path}: ${messageOf(error)}`, { cause: error })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
