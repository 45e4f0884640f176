/** A chain as lines of JSON, and whether such lines are one: what was exported can be verified anywhere, with nothing but the public key. */
import * as z from 'zod'
import type { AuditHead, AuditVerification } from '../contract/audit.js'
import { SandboxError } from '../contract/errors.js'
import type { Signing } from './signing.js'
import type { AuditStore, StoredRecord } from './store.js'
import { recordsUpTo } from './records.js'
import { verifyChain } from './verification.js'

export async function* exportChain(store: AuditStore, signal: AbortSignal | undefined): AsyncGenerator<string> {
  const { newest, head, checkpoint } = store.end()
  if (checkpoint !== undefined) yield `{"checkpoint":${JSON.stringify(checkpoint)}}\n`
  for await (const rows of recordsUpTo(store, { last: newest?.number ?? 0, signal })) for (const { text } of rows) yield `{"record":${text}}\n`
  yield `{"head":${JSON.stringify(head ?? null)}}\n`
}

export interface ExportToVerify {
  readonly lines: AsyncIterable<string>
  readonly problemOf: Signing['problemOf']
  readonly trusted: boolean
  readonly anchor?: AuditHead
}

const recordLine = /^\{"record":(.*)\}$/s
const numberSchema = z.object({ number: z.int().min(1) })

/** Throws SandboxError('invalid') for what is no export at all. */
export async function verifyExport({ lines, ...judging }: ExportToVerify): Promise<AuditVerification> {
  const source = lines[Symbol.asyncIterator]()
  const first = await nextOf(source)
  const isPruned = first?.startsWith('{"checkpoint":') ?? false
  let head: unknown
  return verifyChain({
    ...judging,
    checkpoint: isPruned ? memberOf(first ?? '', 'checkpoint') : undefined,
    // It comes last, and is judged last.
    get head() {
      return head
    },
    records: recordsIn({ first: isPruned ? await nextOf(source) : first, source }, (found) => {
      head = found
    }),
  })
}

interface Lines {
  readonly first: string | undefined
  readonly source: AsyncIterator<string>
}

async function* recordsIn({ first, source }: Lines, onHead: (head: unknown) => void): AsyncGenerator<readonly StoredRecord[]> {
  for (let line = first; line !== undefined; line = await nextOf(source)) {
    const text = recordLine.exec(line)?.[1]
    if (text === undefined) {
      onHead(memberOf(line, 'head'))
      if ((await nextOf(source)) !== undefined) throw new SandboxError('invalid', 'export: something follows the head')
      return
    }
    yield [{ number: numberIn(text), text }]
  }
}

async function nextOf(source: AsyncIterator<string>): Promise<string | undefined> {
  const next = await source.next()
  return next.done ? undefined : next.value
}

/** What it claims; whether that is so is judged by its hash. */
function numberIn(text: string): number {
  try {
    return numberSchema.parse(JSON.parse(text)).number
  } catch {
    throw new SandboxError('invalid', 'export: a line is no record')
  }
}

function memberOf(line: string, name: string): unknown {
  try {
    const value = (JSON.parse(line) as Record<string, unknown>)[name]
    if (value !== undefined) return value
  } catch {
    // Said below.
  }
  throw new SandboxError('invalid', `export: a line is neither a record nor a ${name}`)
}
