import type { SandboxInfo, SandboxUsage } from '../contract/platform.js'
import type { Origins, Policy } from '../contract/policy.js'
import type { UnsignedReceipt } from '../contract/receipt.js'
import { buildReceipt, type ReceiptFacts } from '../receipt/index.js'
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

export interface ReceiptOrder extends Pick<ReceiptFacts, 'machine'> {
  readonly cell: LiveCell
  readonly policy: Policy
  /** Asked for when all was looked at. */
  readonly story: () => Promise<ReceiptStory>
  readonly retell?: Retell | undefined
}

/** What holds in a sandbox, looked at now. Throws SandboxError('not-enforced') when that is not as demanded. */
export async function receiptNow({ cell: live, policy, machine, story, retell }: ReceiptOrder): Promise<UnsignedReceipt> {
  const { inspector, probe } = live.made
  // All that follows may be done without waiting for anything, and others are to have their turn also when receipts are written one after the other.
  await new Promise((resolve) => setImmediate(resolve))
  await live.dropReady()
  const cell = (await inspector?.inspectCell()) ?? { expectations: [], postures: [] }
  const found = (await inspector?.inspectEverything()) ?? { inspected: { processes: 0, threads: 0, complete: false }, living: [] }
  const own = await story()
  const whole = { ...own, programs: inspector?.programs ?? unseenPrograms(own.runs) }
  const told = retell?.(whole) ?? whole
  return buildReceipt({ ...told, policies: policy.layers, issuedAt: new Date().toISOString(), machine, probe, cell, ...found })
}
