import type { SandboxInfo, SandboxUsage } from '../contract/platform.js'
import type { Origins, Policy } from '../contract/policy.js'
import type { UnsignedReceipt } from '../contract/receipt.js'
import { buildReceipt, type ReceiptFacts } from '../receipt/index.js'
import type { Inspector } from './inspector.js'
import type { LiveCell } from './live-cell.js'
import { unseenPrograms } from './unseen-programs.js'

/** What a sandbox says of itself. */
export interface ReceiptStory {
  readonly info: SandboxInfo
  readonly origins: Origins
  readonly runs: ReceiptFacts['runs']
  readonly usage: SandboxUsage
  readonly made: ReceiptFacts['made']
}

/** What is told of it to someone who is to know of a part only. */
export type Retell = (told: RetoldStory) => RetoldStory
type RetoldStory = ReceiptStory & Pick<ReceiptFacts, 'programs'>

export type ReceiptWish = Pick<ReceiptOrder, 'retell' | 'isOfEndedLiner'>

export interface ReceiptOrder extends Pick<ReceiptFacts, 'machine'> {
  readonly cell: LiveCell
  readonly policy: Policy
  /** Asked for when all was looked at. */
  readonly story: () => Promise<ReceiptStory>
  readonly retell?: Retell | undefined
  /** It is of one run alone, which was in a liner and is over: the kernel has left nothing of it that could be looked at. */
  readonly isOfEndedLiner?: boolean
}

/** What holds in a sandbox, looked at now. Throws SandboxError('not-enforced') when that is not as demanded. */
export async function receiptNow({ cell: live, policy, machine, story, retell, isOfEndedLiner }: ReceiptOrder): Promise<UnsignedReceipt> {
  const { inspector, probe } = live.made
  const found = (isOfEndedLiner && inspector && foundBefore(inspector)) || (await lookAround(live, inspector))
  const own = await story()
  const whole = { ...own, programs: inspector?.programs ?? unseenPrograms(own.runs) }
  const told = retell?.(whole) ?? whole
  return buildReceipt({ ...told, policies: policy.layers, issuedAt: new Date().toISOString(), machine, probe, ...found })
}

type Found = Pick<ReceiptFacts, 'cell' | 'inspected' | 'living' | 'cellReadAt'>

/** The cell is as it was made, and of the run there is what was read at its gate. */
function foundBefore({ cellSeen }: Inspector): Found | undefined {
  return cellSeen && { cell: cellSeen, cellReadAt: cellSeen.at, inspected: { processes: 0, threads: 0, complete: true }, living: [] }
}

async function lookAround(live: LiveCell, inspector: Inspector | undefined): Promise<Found> {
  // All that follows may be done without waiting for anything, and others are to have their turn also when receipts are written one after the other.
  await new Promise((resolve) => setImmediate(resolve))
  await live.dropReady()
  const cell = (await inspector?.inspectCell()) ?? { expectations: [], postures: [] }
  const found = (await inspector?.inspectEverything()) ?? { inspected: { processes: 0, threads: 0, complete: false }, living: [] }
  return { cell, ...found }
}
