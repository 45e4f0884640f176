import { canonicalJson } from '../contract/canonical-json.js'
import type { Receipt } from '../contract/receipt.js'
import type { Acts } from './acts.js'
import { sha256 } from './chain.js'

/** What a receipt is known by in the trail. */
export function receiptHash(receipt: Receipt): string {
  return sha256(canonicalJson(receipt))
}

/** Of one that is about to close, where its tenant wants that. A sandbox that can give none any more is closed all the same. */
export async function closingReceipt(acts: Acts, take: () => Promise<Receipt>): Promise<string | undefined> {
  if (acts.settings.receipts !== 'always') return undefined
  return take().then(receiptHash, () => undefined)
}
