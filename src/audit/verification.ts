/** Whether a chain is as it was written, from where it begins to what its head says. Pure, but for asking for the records. */
import { type AuditCheckpoint, type AuditHead, type AuditVerification, auditCheckpointSchema, auditHeadSchema } from '../contract/audit.js'
import { type ChainEnd, chainStart, linkProblem } from './chain.js'
import type { Signing } from './signing.js'
import type { StoredRecord } from './store.js'

export interface ChainToVerify {
  readonly checkpoint: unknown
  readonly head: unknown
  /** In order; some at a time. */
  readonly records: AsyncIterable<readonly StoredRecord[]>
  /** The first of them that would be found by what it does not say. */
  readonly misfiled?: (records: readonly StoredRecord[]) => number | undefined
  readonly anchor?: AuditHead
  readonly problemOf: Signing['problemOf']
  /** Whether the key that signatures are held against is one that was handed in. */
  readonly trusted: boolean
}

type Bad = Extract<AuditVerification, { readonly valid: false }>

export async function verifyChain(chain: ChainToVerify): Promise<AuditVerification> {
  const checkpoint = readCheckpoint(chain)
  if (checkpoint && 'why' in checkpoint) return checkpoint
  const start = checkpoint ?? chainStart
  const walked = await walk(chain, start)
  if ('why' in walked) return walked
  const head = readHead(chain, { start, end: walked })
  if ('why' in head) return head
  const stray = anchorProblem(chain.anchor, { start, end: walked })
  if (stray) return stray
  return { valid: true, records: walked.number - start.number, head, ...(checkpoint && { checkpoint }), trusted: chain.trusted }
}

function bad(number: number, why: string): Bad {
  return { valid: false, number, why }
}

function readCheckpoint({ checkpoint, problemOf }: ChainToVerify): AuditCheckpoint | Bad | undefined {
  if (checkpoint === undefined) return undefined
  const parsed = auditCheckpointSchema.safeParse(checkpoint)
  if (!parsed.success) return bad(1, 'the checkpoint that tells what was pruned cannot be read')
  const why = problemOf(parsed.data)
  return why === undefined ? parsed.data : bad(parsed.data.number, `the checkpoint that tells what was pruned: ${why}`)
}

async function walk({ records, misfiled, anchor }: ChainToVerify, start: ChainEnd): Promise<ChainEnd | Bad> {
  let end = start
  for await (const some of records) {
    for (const { number, text } of some) {
      if (number !== end.number + 1) return bad(end.number + 1, number > end.number ? 'it is missing' : 'what was pruned is there again')
      const found = linkProblem(text, end)
      if ('why' in found) return bad(number, found.why)
      end = found.record
      if (anchor?.number === number && anchor.hash !== end.hash) return bad(number, 'it is another record than the head that was kept elsewhere tells of')
    }
    const wrong = misfiled?.(some)
    if (wrong !== undefined) return bad(wrong, 'it is filed under something else than it says')
  }
  return end
}

interface Walked {
  readonly start: ChainEnd
  readonly end: ChainEnd
}

function readHead({ head, problemOf }: ChainToVerify, { start, end }: Walked): AuditHead | Bad {
  // Nothing was ever written: whoever asks for the head of that signs one.
  const parsed = auditHeadSchema.safeParse(head)
  if (!parsed.success)
    return bad(end.number + (end.number === start.number ? 1 : 0), head === undefined ? 'there is no head that signs for it' : 'the head cannot be read')
  const { number, hash } = parsed.data
  const why = problemOf(parsed.data)
  if (why !== undefined) return bad(Math.max(1, end.number), `the head: ${why}`)
  if (number > end.number) return bad(end.number + 1, `it is missing: the head says that there are ${number}`)
  if (number < end.number) return bad(number + 1, `it was added behind the head, which ends at ${number}`)
  if (hash !== end.hash) return bad(number, 'it is another record than the head tells of')
  return parsed.data
}

function anchorProblem(anchor: AuditHead | undefined, { start, end }: Walked): Bad | undefined {
  if (!anchor) return undefined
  if (anchor.number > end.number) return bad(end.number + 1, `it is missing: a head that was kept elsewhere says that there were ${anchor.number}`)
  if (anchor.number < start.number) return bad(anchor.number, `it was pruned, so a head of then proves nothing: keep one from number ${start.number} on`)
  const isStart = anchor.number === start.number && anchor.hash !== start.hash
  return isStart ? bad(anchor.number, 'it is another record than the head that was kept elsewhere tells of') : undefined
}
