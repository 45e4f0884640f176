import { createReadStream, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { type AuditAct, type AuditFilter, type AuditHead, type AuditRecord, type AuditVerification, auditHeadSchema } from '../../contract/audit.js'
import { SandboxError } from '../../contract/errors.js'
import { hasLedger, type Ledger, localActor, openLedger, verifyAuditExport } from '../../ledger.js'
import { parseWith } from '../../policy/refusal.js'
import { exitCodes } from '../exit-codes.js'
import { watchInterrupts } from '../interrupts.js'
import { momentAgo } from '../moments.js'
import { colorsFor, escapeControls, printJson, say, toJsonLine } from '../print.js'
import { writeOut } from '../streams.js'

export interface AuditFilterFlags {
  readonly tenant?: string
  readonly agent?: string
  readonly sandbox?: string
  readonly actor?: string
  readonly act?: string
  readonly since?: string
  readonly until?: string
  readonly json?: true
}

export interface AuditListFlags extends AuditFilterFlags {
  readonly limit?: string
  readonly cursor?: string
}

export interface AuditTailFlags extends AuditFilterFlags {
  readonly last?: string
}

export interface AuditVerifyFlags {
  readonly head?: string
  readonly json?: true
}

const notAsWritten = 1
const mostHeadBytes = 64 * 1024

/** A line for each; nothing when there is none. */
export async function listAudit(flags: AuditListFlags): Promise<number> {
  const limit = countOf('--limit', flags.limit ?? '100', 1000)
  const page = { limit, ...(flags.cursor !== undefined && { cursor: flags.cursor }) }
  const { items, next } = hasLedger() ? await within((ledger) => ledger.trail.list(filterOf(flags), page)) : { items: [], next: undefined }
  if (flags.json) await printJson({ records: items, ...(next !== undefined && { next }) })
  else await writeOut(items.map((record) => `${lineOf(record)}\n`).join(''))
  if (next !== undefined && !flags.json) say(`there are more: glovebox audit ls --cursor ${next}`)
  return exitCodes.ok
}

/** Until somebody has had enough. */
export async function tailAudit(flags: AuditTailFlags): Promise<number> {
  using interrupts = watchInterrupts()
  const { signal } = interrupts
  return await within(async ({ trail }) => {
    const last = countOf('--last', flags.last ?? '10', 1000)
    try {
      for await (const record of trail.tail(filterOf(flags), { signal, last })) await writeOut(flags.json ? toJsonLine(record) : `${lineOf(record)}\n`)
    } catch (error) {
      if (!signal.aborted) throw error
    }
    return exitCodes.ok
  })
}

/** Resolves to 0 only when all of it is as it was written, and signed by a key that is known here. */
export async function verifyAudit(file: string | undefined, { head, json }: AuditVerifyFlags): Promise<number> {
  const anchor = head === undefined ? undefined : readHead(head)
  const found = file === undefined ? await verifyOwn(anchor) : await verifyAuditExport(linesOf(file), anchor)
  if (json) await printJson(found)
  else await writeOut(`${verdictOf(found)}\n`)
  return found.valid && found.trusted ? exitCodes.ok : notAsWritten
}

async function verifyOwn(anchor: AuditHead | undefined): Promise<AuditVerification> {
  if (!hasLedger()) throw new SandboxError('not-found', 'there is no audit trail here: nothing was served yet', { hint: 'glovebox keys create' })
  return within(({ trail }) => trail.verify(anchor ? { anchor } : {}))
}

export async function exportAudit(): Promise<number> {
  return within(async ({ trail }) => {
    await trail.append({ act: 'audit.export', actor: localActor.key })
    for await (const line of trail.export()) await writeOut(line)
    return exitCodes.ok
  })
}

export async function printHead(): Promise<number> {
  await printJson(await within(({ trail }) => trail.head()))
  return exitCodes.ok
}

export async function pruneAudit({ before, json }: { readonly before: string; readonly json?: true }): Promise<number> {
  const time = momentAgo('--before', before)
  const removed = await within(({ trail }) => trail.prune(time, { actor: localActor.key }))
  if (json) await printJson({ before: time, removed })
  else say(`${removed} records from before ${time} were taken away`)
  return exitCodes.ok
}

async function within<T>(act: (ledger: Ledger) => Promise<T>): Promise<T> {
  // What is read or taken away needs no room to begin with.
  await using ledger = await openLedger({ leastFreeBytes: 0 })
  return await act(ledger)
}

function filterOf({ tenant, agent, sandbox, actor, act, since, until }: AuditFilterFlags): AuditFilter {
  const named = { tenant, agent, sandbox, actor, act: act as AuditAct | undefined }
  const times = { ...(since !== undefined && { since: momentAgo('--since', since) }), ...(until !== undefined && { until: momentAgo('--until', until) }) }
  return { ...(Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined)) as AuditFilter), ...times }
}

function countOf(flag: string, text: string, most: number): number {
  const count = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN
  if (!(count >= 0 && count <= most)) throw new SandboxError('invalid', `${flag}: must be a number up to ${most}, got '${text.slice(0, 40)}'`)
  return count
}

function readHead(file: string): AuditHead {
  const text = reading(file, () => readFileSync(file, 'utf8'))
  if (text.length > mostHeadBytes) throw new SandboxError('invalid', `${file}: is no head of an audit trail`)
  try {
    return parseWith(auditHeadSchema, JSON.parse(text), file)
  } catch (error) {
    throw error instanceof SandboxError ? error : new SandboxError('invalid', `${file}: is no JSON`, { cause: error })
  }
}

async function* linesOf(file: string): AsyncGenerator<string> {
  const stream = createReadStream(file)
  const failed = new Promise<never>((_, reject) => stream.once('error', (error) => reject(unreadable(file, error))))
  failed.catch(() => undefined)
  const lines = createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]()
  for (;;) {
    const next = await Promise.race([lines.next(), failed])
    if (next.done) return
    if (next.value !== '') yield next.value
  }
}

function reading<T>(file: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw unreadable(file, error)
  }
}

function unreadable(file: string, error: unknown): SandboxError {
  return new SandboxError('invalid', `${file}: cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`, { cause: error })
}

function verdictOf(found: AuditVerification): string {
  const colors = colorsFor(process.stdout)
  if (!found.valid) return `${colors.red('✗')} record ${found.number}: ${escapeControls(found.why)}`
  const pruned = found.checkpoint ? `; those up to ${found.checkpoint.number} were pruned` : ''
  const words = `${found.records} records, each as it was written; the newest is ${found.head.number}, signed by key ${found.head.signature.keyId}${pruned}`
  return found.trusted ? `${colors.green('✓')} ${words}` : `${colors.red('✗')} ${words}, which is not known here`
}

/** When, which, what, by whom, to what, and how it ended. */
function lineOf({ number, at, act, actor, tenant, sandbox, agent, of, outcome, details }: AuditRecord): string {
  const whose = [tenant, sandbox, agent].filter((part) => part !== undefined).join('/')
  const ended = outcome === undefined ? '' : outcome.kind === 'ok' ? 'ok' : `${outcome.code}: ${outcome.message}`
  const said = details === undefined ? '' : JSON.stringify(details)
  const parts = [
    String(number).padStart(6),
    at.slice(0, 19),
    act.padEnd(16),
    actor,
    whose,
    of === undefined ? '' : `of ${of}`,
    ended,
    said.length > 160 ? `${said.slice(0, 160)}…` : said,
  ]
  return escapeControls(parts.filter((part) => part !== '').join('  '))
}
